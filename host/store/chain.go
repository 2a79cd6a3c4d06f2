package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Chain is the hash of a history extended by one applied commit: SHA-256, hex,
// over the chain before it, the commit's id, its head and its entries, each with
// its length. The chain before the first commit is "". Every backend uses it, so
// that marks can be compared across backends and hosts (S-6, S-7).
func Chain(before string, c Commit) string {
	h := sha256.New()
	part(h, []byte("commit"))
	part(h, []byte(before))
	part(h, []byte(c.ID))
	part(h, c.Head)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(c.Entries)))
	h.Write(n[:])
	for _, e := range c.Entries {
		part(h, e)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ChainNever is the hash of a history extended by the decision that commit id
// never applies (S-4).
func ChainNever(before, id string) string {
	h := sha256.New()
	part(h, []byte("never"))
	part(h, []byte(before))
	part(h, []byte(id))
	return hex.EncodeToString(h.Sum(nil))
}

// ContentHash identifies a commit's content for S-3: what must be equal when
// its id is used again. After and Require are part of it as well.
func ContentHash(c Commit) [sha256.Size]byte {
	h := sha256.New()
	part(h, []byte(c.After.Birth.String()))
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], c.After.Revision)
	h.Write(n[:])
	h.Write([]byte{byte(c.Require.Level)})
	binary.BigEndian.PutUint64(n[:], uint64(c.Require.Replicas))
	h.Write(n[:])
	part(h, []byte(Chain(c.After.Chain, c)))
	var out [sha256.Size]byte
	h.Sum(out[:0])
	return out
}

func part(h hash.Hash, b []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}
