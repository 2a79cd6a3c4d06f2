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
	var room [256]byte // what is short goes into the hash in one piece
	b := appendPart(room[:0], "commit")
	b = appendPart(b, before)
	b = appendPart(b, c.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(len(c.Head)))
	h := sha256.New()
	h.Write(b)
	h.Write(c.Head)
	b = binary.BigEndian.AppendUint64(b[:0], uint64(len(c.Entries)))
	for _, e := range c.Entries {
		b = binary.BigEndian.AppendUint64(b, uint64(len(e)))
		h.Write(b)
		h.Write(e)
		b = b[:0]
	}
	h.Write(b)
	return hexSum(h)
}

// ChainNever is the hash of a history extended by the decision that commit id
// never applies (S-4).
func ChainNever(before, id string) string {
	b := appendPart(nil, "never")
	b = appendPart(b, before)
	b = appendPart(b, id)
	h := sha256.New()
	h.Write(b)
	return hexSum(h)
}

// ContentHash identifies a commit's content for S-3: what must be equal when
// its id is used again. After and Require are part of it as well.
func ContentHash(c Commit) [sha256.Size]byte { return contentHash(c, Chain(c.After.Chain, c)) }

// Hashes gives Chain(before, c) and ContentHash(c). A commit that names the chain
// it builds on, which is before then, is hashed once instead of twice.
func Hashes(before string, c Commit) (chain string, content [sha256.Size]byte) {
	chain = Chain(before, c)
	if c.After.Chain != before {
		return chain, ContentHash(c)
	}
	return chain, contentHash(c, chain)
}

// contentHash is ContentHash of a commit whose own chain is known.
func contentHash(c Commit, chain string) (out [sha256.Size]byte) {
	var room [192]byte
	b := appendPart(room[:0], c.After.Birth.String())
	b = binary.BigEndian.AppendUint64(b, c.After.Revision)
	b = append(b, byte(c.Require.Level))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Require.Replicas))
	b = appendPart(b, chain)
	return sha256.Sum256(b)
}

// appendPart appends s with its length.
func appendPart(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(s))), s...)
}

func hexSum(h hash.Hash) string {
	var sum [sha256.Size]byte
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], h.Sum(sum[:0]))
	return string(text[:])
}
