package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// model drives two handles of this store and two of the memory store through
// the same calls, and compares every answer.
type model struct {
	t     *rapid.T
	dir   string
	real  [2]*Store
	plain [2]store.Store
	clock func() time.Time

	keys    []store.Key
	fences  map[store.Key][]fences       // minted so far, newest last
	orphan  map[store.Key]bool           // the owner's handle was closed
	marks   map[store.Key][]store.Mark   // acknowledged so far
	commits map[store.Key][]store.Commit // tried so far
}

// fences are the same fence in both stores; only the generation differs.
type fences struct{ real, plain store.Fence }

func (m *model) open(i int) {
	s, err := Open(Config{Dir: m.dir, Clock: m.clock})
	if err != nil {
		m.t.Fatalf("open: %v", err)
	}
	m.real[i] = s
}

func (m *model) same(what string, real, plain error) bool {
	m.t.Helper()
	if store.KindOf(real) != store.KindOf(plain) {
		m.t.Fatalf("%s: got error %v, the memory store says %v", what, real, plain)
	}
	var a, b *store.Error
	if errors.As(real, &a) && errors.As(plain, &b) && a.Revision != b.Revision {
		m.t.Fatalf("%s: got revision %d with %v, the memory store says %d", what, a.Revision, real, b.Revision)
	}
	return real == nil
}

func (m *model) sameValue(what string, real, plain any) {
	m.t.Helper()
	if d := cmp.Diff(plain, real); d != "" {
		m.t.Fatalf("%s differs (-memory +fs):\n%s", what, d)
	}
}

// ack leaves out what the two stores rightly see differently.
func ack(a store.Ack) store.Ack { a.Durability = store.Durability{}; return a }

func shown(r store.Record) store.Record {
	r.Fence.Generation, r.Generation, r.Holder = "", "", nil
	return r
}

func (m *model) key() store.Key { return rapid.SampledFrom(m.keys).Draw(m.t, "key") }

func (m *model) handle() int { return rapid.IntRange(0, 1).Draw(m.t, "handle") }

// fence is mostly the newest one.
func (m *model) fence(k store.Key) fences {
	all := m.fences[k]
	if k.Kind.Shared() || len(all) == 0 {
		var f fences
		if n := len(m.marks[k]); n > 0 && rapid.Bool().Draw(m.t, "with birth") {
			f.real.Birth = m.marks[k][n-1].Birth
			f.plain = f.real
		}
		return f
	}
	if rapid.IntRange(0, 4).Draw(m.t, "old fence") == 0 {
		return rapid.SampledFrom(all).Draw(m.t, "fence")
	}
	return all[len(all)-1]
}

func (m *model) mark(k store.Key) store.Mark {
	all := m.marks[k]
	switch {
	case len(all) == 0:
		return store.Mark{}
	case rapid.IntRange(0, 5).Draw(m.t, "old mark") == 0:
		mark := rapid.SampledFrom(all).Draw(m.t, "mark")
		if rapid.Bool().Draw(m.t, "future") {
			mark.Revision += 2
		}
		return mark
	}
	return all[len(all)-1]
}

func (m *model) draw(k store.Key, after store.Mark) store.Commit {
	if tried := m.commits[k]; len(tried) > 0 && rapid.IntRange(0, 5).Draw(m.t, "again") == 0 {
		c := rapid.SampledFrom(tried[max(0, len(tried)-store.MinRememberedCommits):]).Draw(m.t, "commit")
		if rapid.IntRange(0, 3).Draw(m.t, "other content") == 0 {
			c.Head = []byte("other")
		}
		return c
	}
	c := store.Commit{ID: uuid.NewString(), After: after, Head: m.payload("head")}
	for range rapid.IntRange(0, 3).Draw(m.t, "entries") {
		c.Entries = append(c.Entries, m.payload("entry"))
	}
	m.commits[k] = append(m.commits[k], c)
	return c
}

func (m *model) payload(what string) []byte {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.SampledFrom([][]byte{[]byte(`{"a":9007199254740993}`), []byte("\n\n"), []byte("null"), []byte(`"<&>"`), []byte("{\"a\":\n1}")}),
	).Draw(m.t, what)
}

func (m *model) seen(k store.Key, a store.Ack) { m.marks[k] = append(m.marks[k], a.Mark) }

func (m *model) Create(*rapid.T) {
	k, h := m.key(), m.handle()
	c := m.draw(k, store.Mark{})
	a, err := m.real[h].Create(m.ctx(), k, c)
	b, want := m.plain[h].Create(m.ctx(), k, c)
	if m.same("create", err, want) {
		m.sameValue("create", ack(a), ack(b))
		m.seen(k, a)
	}
}

func (m *model) Commit(*rapid.T) {
	k, h := m.key(), m.handle()
	f := m.fence(k)
	c := m.draw(k, m.mark(k))
	a, err := m.real[h].Commit(m.ctx(), k, f.real, c)
	b, want := m.plain[h].Commit(m.ctx(), k, f.plain, c)
	if m.same("commit", err, want) {
		m.sameValue("commit", ack(a), ack(b))
		m.seen(k, a)
	}
}

func (m *model) Resolve(*rapid.T) {
	k, h := m.key(), m.handle()
	f := m.fence(k)
	c := m.draw(k, m.mark(k))
	a, err := m.real[h].Resolve(m.ctx(), k, f.real, c.ID)
	b, want := m.plain[h].Resolve(m.ctx(), k, f.plain, c.ID)
	if m.same("resolve", err, want) {
		a.Ack, b.Ack = ack(a.Ack), ack(b.Ack)
		m.sameValue("resolve", a, b)
		if !a.Applied {
			m.seen(k, a.Ack)
		}
	}
}

func (m *model) Acquire(*rapid.T) {
	k, h := m.key(), m.handle()
	c := store.Claim{Owner: fmt.Sprintf("owner <%d>", h), Run: uuid.NewString(), Force: rapid.IntRange(0, 2).Draw(m.t, "force") == 0}
	if rapid.Bool().Draw(m.t, "seen") {
		c.Seen = m.mark(k)
	}
	p := c
	p.Force = c.Force || m.orphan[k]
	f, a, err := m.real[h].Acquire(m.ctx(), k, c)
	g, b, want := m.plain[h].Acquire(m.ctx(), k, p)
	if m.same("acquire", err, want) {
		m.sameValue("acquire", shown(a), shown(b))
		m.fences[k] = append(m.fences[k], fences{f, g})
		m.orphan[k] = false
	}
}

func (m *model) Renew(*rapid.T) {
	k, h := m.key(), m.handle()
	f := m.fence(k)
	m.same("renew", m.real[h].Renew(m.ctx(), k, f.real, time.Minute), m.plain[h].Renew(m.ctx(), k, f.plain, time.Minute))
}

func (m *model) Release(*rapid.T) {
	k, h := m.key(), m.handle()
	f := m.fence(k)
	m.same("release", m.real[h].Release(m.ctx(), k, f.real), m.plain[h].Release(m.ctx(), k, f.plain))
}

func (m *model) Delete(*rapid.T) {
	k, h := m.key(), m.handle()
	if rapid.IntRange(0, 3).Draw(m.t, "really") > 0 {
		m.Load(nil)
		return
	}
	f := m.fence(k)
	if m.same("delete", m.real[h].Delete(m.ctx(), k, f.real), m.plain[h].Delete(m.ctx(), k, f.plain)) {
		delete(m.commits, k)
	}
}

func (m *model) Signal(*rapid.T) {
	k, h := m.key(), m.handle()
	kind := rapid.SampledFrom([]store.SignalKind{store.SignalStop, store.SignalCancel, "pause"}).Draw(m.t, "signal")
	s := store.Signal{Kind: kind, Run: m.fence(k).real.Run, Reason: "because", Time: m.clock()}
	m.same("signal", m.real[h].Signal(m.ctx(), k, s), m.plain[h].Signal(m.ctx(), k, s))
}

func (m *model) Load(*rapid.T) {
	k, h := m.key(), m.handle()
	a, err := m.real[h].Load(m.ctx(), k)
	b, want := m.plain[h].Load(m.ctx(), k)
	if m.same("load", err, want) {
		m.sameValue("load", shown(a), shown(b))
	}
}

func (m *model) ReadLog(*rapid.T) {
	k, h := m.key(), m.handle()
	from, limit := rapid.Uint64Range(0, 20).Draw(m.t, "from"), rapid.IntRange(0, 5).Draw(m.t, "limit")
	a, err := m.real[h].ReadLog(m.ctx(), k, from, limit)
	b, want := m.plain[h].ReadLog(m.ctx(), k, from, limit)
	if m.same("readlog", err, want) {
		m.sameValue("readlog", a, b)
	}
}

func (m *model) Check(*rapid.T) {
	k, h := m.key(), m.handle()
	a, err := m.real[h].Check(m.ctx(), k)
	b, want := m.plain[h].(store.Checker).Check(m.ctx(), k)
	if m.same("check", err, want) && (len(a.Findings) > 0 || a.Entries != b.Entries || a.Revision != b.Revision) {
		m.t.Fatalf("check: got %+v, the memory store says %+v", a, b)
	}
}

// Reopen closes a handle, as a crash would, and opens another.
func (m *model) Reopen(*rapid.T) {
	h := m.handle()
	for _, k := range m.keys {
		m.real[h].mu.Lock()
		r := m.real[h].records[k]
		m.real[h].mu.Unlock()
		if r != nil && r.owner != nil && len(m.fences[k]) > 0 && r.owning == m.fences[k][len(m.fences[k])-1].real {
			m.orphan[k] = true
		}
	}
	if err := m.real[h].Close(); err != nil {
		m.t.Fatalf("close: %v", err)
	}
	m.open(h)
}

func (m *model) ctx() context.Context { return m.t.Context() }

func TestItAnswersLikeTheMemoryStoreAlsoWhenReopened(t *testing.T) {
	// Flushes of a disk take most of the time; what they do is tested elsewhere.
	base := "/dev/shm"
	if _, err := os.Stat(base); err != nil {
		base = t.TempDir()
	}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "fs-model-")
		if err != nil {
			t.Fatal(err)
		}
		clock := func() time.Time { return time.Unix(1_000_000, 1).UTC() }
		data := memstore.NewWith(memstore.Config{Clock: clock})
		m := &model{
			t: t, dir: dir, plain: [2]store.Store{data.Open(), data.Open()}, clock: clock,
			keys:   []store.Key{store.SessionKey("a"), store.SessionKey("A"), {Kind: store.KindScope, ID: "a"}},
			fences: map[store.Key][]fences{}, orphan: map[store.Key]bool{}, marks: map[store.Key][]store.Mark{}, commits: map[store.Key][]store.Commit{},
		}
		m.open(0)
		m.open(1)
		defer func() {
			if err := errors.Join(m.real[0].Close(), m.real[1].Close(), os.RemoveAll(dir)); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		t.Repeat(rapid.StateMachineActions(m))
	})
}
