package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

// durability is all that memory reaches.
var durability = store.Durability{Level: store.LevelMemory}

// engine is one handle's transactions: the mutex is held for each.
type engine struct {
	m    *Memory
	once sync.Once
	done chan struct{} // closed by Close
}

var _ ledger.Engine = (*engine)(nil)

func (e *engine) Do(_ context.Context, key store.Key, _ bool, f func(ledger.Tx) error) error {
	return e.locked(func() error { return f(tx{e.m, key}) })
}

// locked runs f alone, unless the handle is closed.
func (e *engine) locked(f func() error) error {
	select {
	case <-e.done:
		return fmt.Errorf("the store handle is closed: %w", store.ErrUnavailable)
	default:
	}
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	return f()
}

func (e *engine) Rows(_ context.Context, kind store.Kind, after string, n int) (rows []ledger.Row, err error) {
	err = e.locked(func() error {
		var ids []string
		for k := range e.m.records {
			if k.Kind == kind && k.ID > after {
				ids = append(ids, k.ID)
			}
		}
		sort.Strings(ids)
		for _, id := range ids[:min(n, len(ids))] {
			r := e.m.records[store.Key{Kind: kind, ID: id}]
			state := r.state
			rows = append(rows, ledger.Row{ID: id, State: &state, Head: copied(r.head)})
		}
		return nil
	})
	return rows, err
}

func (e *engine) Describe(context.Context) (store.Description, error) {
	return store.Description{
		Name: "memory", Location: "memory of this process", Durability: durability,
		Probe:        "memory by design: nothing outlives the process",
		Capabilities: []string{"watch", "check", "queue"},
	}, e.locked(func() error { return nil })
}

func (e *engine) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}

// tx works under the mutex. Its writes come last in each step, and can't fail.
type tx struct {
	m   *Memory
	key store.Key
}

func (t tx) Load() (*ledger.State, []byte, error) {
	r := t.m.records[t.key]
	if r == nil {
		return nil, nil, nil
	}
	state := r.state
	return &state, copied(r.head), nil
}

func (t tx) Grave() (store.Birth, error) { return t.m.graves[t.key], nil }

func (t tx) Settled(id string) (*ledger.Settled, error) {
	r := t.m.records[t.key]
	if s, ok := r.settled[id]; ok {
		return &s, nil
	}
	return nil, nil
}

func (t tx) Chain(revision uint64) (string, error) {
	return t.m.records[t.key].chains[revision-1], nil
}

func (t tx) Entries(seq uint64, f func(store.Entry) bool) error {
	entries := t.m.records[t.key].entries
	for ; seq <= uint64(len(entries)); seq++ {
		e := entries[seq-1]
		if sha256.Sum256(e.data) != e.sum {
			return fmt.Errorf("entry %d: %w", seq, store.ErrCorrupt)
		}
		if !f(store.Entry{Seq: seq, Revision: e.revision, Data: bytes.Clone(e.data)}) {
			return nil
		}
	}
	return nil
}

func (t tx) Put(c ledger.Change) error {
	r := t.m.records[t.key]
	if r == nil {
		r = &record{settled: map[string]ledger.Settled{}}
		t.m.records[t.key] = r
	}
	posted := !slices.Equal(r.state.Signals, c.State.Signals)
	r.state = *c.State
	if c.ID != "" {
		r.settle(c)
	}
	if posted {
		close(t.m.posted)
		t.m.posted = make(chan struct{})
	}
	return nil
}

func (t tx) Delete(grave store.Birth) error {
	t.m.graves[t.key] = grave
	delete(t.m.records, t.key)
	return nil
}
