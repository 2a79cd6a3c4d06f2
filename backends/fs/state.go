package fs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// rememberedCommits is how many commit ids a record keeps in memory at least (S-3).
const rememberedCommits = 4 * store.MinRememberedCommits

// state is a record as its frames say it is, up to end.
type state struct {
	began     bool // a first frame was applied, or an index entry was taken
	deleted   bool
	tombstone store.Birth
	birth     store.Birth
	rev, log  uint64
	chain     string
	prev      uint32      // checksum of the last header
	last, end int64       // where the last whole frame begins, and where it ends
	lastKind  format.Kind // "": none since the index entry

	head       []byte
	lastCommit string
	fence      store.Fence // zero: unowned
	generation string
	acks       []remembered // newest last
	nevers     []string     // newest last
	sinceIndex int          // commits since the newest index entry
}

type remembered struct {
	id      string
	content string // store.ContentHash in hex
	ack     store.Ack
}

// errLink says that a frame is whole but does not belong where it stands.
var errLink = errors.New("the frame does not follow from the one before it")

// apply advances the state by one whole frame. Parts may alias a buffer; what is kept is copied.
func (s *state) apply(key store.Key, h format.Header, m format.Meta, parts [][]byte) error {
	return s.applyChained(key, h, m, parts, s.chainOf(h.Kind, m, parts))
}

// applyChained is apply where the chain with the frame was worked out before.
func (s *state) applyChained(key store.Key, h format.Header, m format.Meta, parts [][]byte, chain string) error {
	if h.At != s.end || h.Prev != s.prev {
		return fmt.Errorf("%w: it links to another frame", errLink)
	}
	first := h.Kind == format.Create || h.Kind == format.Tombstone
	if first == s.began || s.deleted {
		return fmt.Errorf("%w: a %s frame can't stand here", errLink, h.Kind)
	}
	want := *s
	want.began, want.chain = true, chain
	var err error
	switch h.Kind {
	case format.Create:
		err = want.create(key, m, parts)
	case format.Commit:
		err = want.commit(key, h, m, parts)
	case format.Never:
		want.rev++
		want.nevers = latest(append(want.nevers, m.Commit))
	case format.Acquire:
		err = want.acquire(m)
	case format.Release:
		want.fence = store.Fence{}
	case format.Delete, format.Tombstone:
		want.deleted, want.tombstone = true, m.Birth
		if h.Kind == format.Tombstone {
			want.chain = h.Chain
		}
	}
	if err != nil {
		return err
	}
	if h.Rev != want.rev || h.Log != want.log || h.Chain != want.chain {
		return fmt.Errorf("%w: revision, log length or chain are others", errLink)
	}
	want.prev, want.last, want.end, want.lastKind = h.Sum, h.At, h.End(), h.Kind
	*s = want
	return nil
}

func (s *state) create(key store.Key, m format.Meta, parts [][]byte) error {
	if m.Key == nil || *m.Key != key {
		return fmt.Errorf("%w: the journal is another record's", errLink)
	}
	s.birth = m.Birth
	return s.commit(key, format.Header{}, m, parts)
}

func (s *state) commit(key store.Key, h format.Header, m format.Meta, parts [][]byte) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: a commit without a head", errLink)
	}
	if m.Fence != nil {
		// Read from an index entry on, the first commit brings the fence.
		if s.lastKind == "" && h.Kind == format.Commit {
			s.fence, s.generation = *m.Fence, m.Fence.Generation
		}
		if *m.Fence != s.currentFence(key.Kind) {
			return fmt.Errorf("%w: a commit under another fence", errLink)
		}
	}
	s.rev++
	s.log += uint64(len(parts) - 1)
	s.head = append([]byte{}, parts[0]...)
	s.lastCommit = m.Commit
	s.sinceIndex++
	r := remembered{id: m.Commit, content: m.Content, ack: store.Ack{Mark: s.mark(), LogLength: s.log}}
	if err := r.ack.Durability.Level.UnmarshalText([]byte(m.Level)); err != nil {
		return fmt.Errorf("%w: %w", errLink, err)
	}
	s.acks = latest(append(s.acks, r))
	return nil
}

func (s *state) acquire(m format.Meta) error {
	if m.Fence == nil || m.Fence.Birth != s.birth {
		return fmt.Errorf("%w: an acquire for another birth", errLink)
	}
	s.fence, s.generation = *m.Fence, m.Fence.Generation
	return nil
}

func (s *state) mark() store.Mark { return store.Mark{Birth: s.birth, Revision: s.rev, Chain: s.chain} }

// currentFence is the fence that a writer must hold: of a shared kind the birth alone.
func (s *state) currentFence(k store.Kind) store.Fence {
	if k.Shared() {
		return store.Fence{Birth: s.birth}
	}
	return s.fence
}

// find is the remembered commit id, or nil.
func (s *state) find(id string) *remembered {
	for i := range s.acks {
		if s.acks[i].id == id {
			return &s.acks[i]
		}
	}
	return nil
}

func (s *state) isNever(id string) bool {
	for _, n := range s.nevers {
		if n == id {
			return true
		}
	}
	return false
}

// wasReleased reports whether the last owner released the record, or there was none.
func (s *state) wasReleased() bool { return s.fence.IsZero() }

// chainOf is the chain with a frame that follows s. Of a commit without a head, which
// is none, it is the chain before.
func (s *state) chainOf(k format.Kind, m format.Meta, parts [][]byte) string {
	switch {
	case k == format.Never:
		return store.ChainNever(s.chain, m.Commit)
	case (k == format.Create || k == format.Commit) && len(parts) > 0:
		return store.Chain(s.chain, store.Commit{ID: m.Commit, Head: parts[0], Entries: parts[1:]})
	}
	return s.chain
}

// frame encodes what would follow s, in memory only.
func (s *state) frame(k format.Kind, m format.Meta, parts ...[]byte) (format.Header, []byte, error) {
	return s.frameInto(nil, k, m, s.chainOf(k, m, parts), parts)
}

// frameInto is frame behind what buf holds, where the chain with the frame is known.
func (s *state) frameInto(buf []byte, k format.Kind, m format.Meta, chain string, parts [][]byte) (format.Header, []byte, error) {
	h := format.Header{Kind: k, At: s.end, Rev: s.rev, Log: s.log, Chain: chain, Prev: s.prev}
	switch k {
	case format.Create, format.Commit:
		h.Rev++
		h.Log += uint64(len(parts) - 1)
	case format.Never:
		h.Rev++
	case format.Acquire, format.Release, format.Delete, format.Tombstone:
	}
	b, err := format.AppendFrame(buf, &h, m, parts...)
	return h, b, err
}

// indexLine is s as an index entry.
func (s *state) indexLine(key store.Key) format.IndexLine {
	return format.IndexLine{At: s.end, Rev: s.rev, Log: s.log, Birth: s.birth, Key: format.KeySum(key), Prev: s.prev, Chain: s.chain}
}

// fromIndex is the state that an index entry stands for, without head and fence.
func fromIndex(l format.IndexLine) state {
	return state{began: true, birth: l.Birth, rev: l.Rev, log: l.Log, chain: l.Chain, prev: l.Prev, last: l.At, end: l.At}
}

func contentHash(c store.Commit) string {
	h := store.ContentHash(c)
	return hex.EncodeToString(h[:])
}

// hashes is the chain with c after before, and contentHash.
func hashes(before string, c store.Commit) (chain, content string) {
	chain, sum := store.Hashes(before, c)
	return chain, hex.EncodeToString(sum[:])
}

// latest forgets the oldest in one go once there are twice as many as are
// remembered, so that it copies rarely.
func latest[T any](s []T) []T {
	if len(s) < 2*rememberedCommits {
		return s
	}
	return append(make([]T, 0, 2*rememberedCommits), s[len(s)-rememberedCommits:]...)
}

// parts is a commit's payload in the order of its lines.
func parts(c store.Commit) [][]byte {
	return append([][]byte{c.Head}, c.Entries...)
}

// isBlank reports whether b is space that no frame was written to.
func isBlank(b []byte) bool { return len(bytes.TrimLeft(b, format.Blank)) == 0 }
