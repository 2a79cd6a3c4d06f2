package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loophost/loophost/host/store"
)

// spawning gives a harness an owner that runs beside the suite and dies like a
// process: when it is killed, nothing of it reaches store or suite any more.
type spawning struct{ Harness }

func (h spawning) SpawnOwner(ctx context.Context) (OwnerProcess, error) {
	st, err := h.Open(ctx)
	if err != nil {
		return nil, err
	}
	p := &mortal{faulty: NewFaulty(st), done: make(chan error, 1)}
	var in *io.PipeReader
	var out *io.PipeWriter
	in, p.toOwner = io.Pipe()
	p.fromOwner, out = io.Pipe()
	go func() {
		err := ServeOwner(context.WithoutCancel(ctx), p.faulty.Store(), in, out)
		p.done <- errors.Join(err, in.Close(), out.Close(), st.Close())
	}()
	return p, nil
}

type mortal struct {
	faulty    *Faulty
	toOwner   *io.PipeWriter
	fromOwner *io.PipeReader
	done      chan error
	dead      bool
}

func (p *mortal) Read(b []byte) (int, error)  { return p.fromOwner.Read(b) }
func (p *mortal) Write(b []byte) (int, error) { return p.toOwner.Write(b) }
func (p *mortal) Pause() error                { return errors.ErrUnsupported }
func (p *mortal) Resume() error               { return errors.ErrUnsupported }

func (p *mortal) Kill() error {
	p.dead = true
	p.faulty.Inject(Fault{Times: -1})
	return errors.Join(p.fromOwner.Close(), p.toOwner.Close())
}

func (p *mortal) Close() error {
	err := p.toOwner.Close()
	if end := <-p.done; !p.dead {
		err = errors.Join(err, end)
	}
	return errors.Join(err, p.fromOwner.Close())
}

// lazy acknowledges each commit, and writes it when it is called the next time.
type lazy struct {
	store.Store
	mu   sync.Mutex
	held func() error
}

func (l *lazy) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return nil
	}
	do := l.held
	l.held = nil
	return do()
}

func (l *lazy) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	if err := l.flush(); err != nil {
		return store.Ack{}, err
	}
	rec, err := l.Store.Load(ctx, key)
	if err != nil {
		return store.Ack{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = func() error {
		_, err := l.Store.Commit(context.WithoutCancel(ctx), key, f, c)
		return err
	}
	mark := store.Mark{Birth: rec.Mark.Birth, Revision: rec.Mark.Revision + 1, Chain: store.Chain(rec.Mark.Chain, c)}
	return store.Ack{Mark: mark, LogLength: rec.LogLength + uint64(len(c.Entries)), Durability: store.Durability{Level: store.LevelProcess}}, nil
}

func (l *lazy) Release(ctx context.Context, key store.Key, f store.Fence) error {
	if err := l.flush(); err != nil {
		return err
	}
	return l.Store.Release(ctx, key, f)
}

// early acknowledges an acquire and a release without doing the second.
type early struct{ store.Store }

func (early) Release(context.Context, store.Key, store.Fence) error { return nil }

func crashFailures(t *testing.T, h Harness) map[string]string {
	t.Helper()
	o := ownOptions()
	o.Profiles = []Profile{ProfileCrash}
	report, err := check(context.Background(), spawning{h}, o, crashCases())
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, r := range report.Profiles[0].Results {
		switch r.Outcome {
		case Failed:
			failed[r.ID] = r.Reason
		case Skipped:
			t.Errorf("%s was skipped: %s", r.ID, r.Reason)
		}
	}
	return failed
}

func TestUnbrokenStorePassesTheKillMatrix(t *testing.T) {
	for id, why := range crashFailures(t, newMini("")) {
		t.Errorf("%s fails against a store without a defect: %s", id, why)
	}
}

// Each broken store is caught by the kill matrix, and each of its cases catches one.
func TestTheKillMatrixCatchesBrokenStores(t *testing.T) {
	broken := map[string]func(store.Store) store.Store{
		"acknowledges before it writes": func(s store.Store) store.Store { return &lazy{Store: s} },
		"releases nothing":              func(s store.Store) store.Store { return early{s} },
	}
	for name, do := range map[string]func(store.Store, context.Context, store.Key, store.Fence, store.Commit) (store.Ack, error){
		"keeps the old head": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			rec, err := s.Load(ctx, key)
			if err != nil {
				return store.Ack{}, err
			}
			c.Head = rec.Head
			return s.Commit(ctx, key, f, c)
		},
		"appends twice": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			c.Entries = append(slices.Clone(c.Entries), c.Entries...)
			return s.Commit(ctx, key, f, c)
		},
	} {
		broken[name] = func(s store.Store) store.Store { return commits{s, do} }
	}
	catches, caught := map[string]bool{}, map[string][]string{}
	for name, with := range broken {
		failed := crashFailures(t, tampered{newMini(""), with})
		if len(failed) == 0 {
			t.Errorf("a store that is broken (%s): want a case that fails, got none", name)
		}
		for id := range failed {
			catches[id] = true
			caught[name] = append(caught[name], id)
		}
	}
	for _, c := range crashCases() {
		if !catches[c.ID] {
			t.Errorf("%s: want a broken store that it catches, got none", c.ID)
		}
	}
	documented(t, ProfileCrash, caught)
}

// The rows of the matrix and the sides of each are all there.
func TestTheKillMatrixIsWhole(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range Cases(ProfileCrash) {
		ids[c.ID] = true
	}
	for _, row := range []string{"completes", "stops", "exhausts", "recovers", "mirrors"} {
		for _, at := range []string{"before", "after", "during"} {
			if id := fmt.Sprintf("M-5/%s/%s", row, at); !ids[id] {
				t.Errorf("there is no case %s", id)
			}
		}
	}
}

// A run with fewer cells than the run that nobody kills fails the case, and so
// does a store whose calls can't be listened to.
func TestAMissingCellFailsTheKillMatrix(t *testing.T) {
	quiet := spawning{newMini("")}
	for name, h := range map[string]Harness{"an owner that ends before its cells": endless{quiet}, "an owner that can't be started": unspawnable{newMini("")}} {
		o := ownOptions()
		o.Profiles = []Profile{ProfileCrash}
		report, err := check(t.Context(), h, o, crashCases()[:1])
		if err != nil {
			t.Fatal(err)
		}
		res := report.Profiles[0].Results[0]
		if res.Outcome != Failed || !strings.Contains(res.Reason, "cell") && !strings.Contains(res.Reason, "start") {
			t.Errorf("%s: got %s %q, want a failure that names it", name, res.Outcome, res.Reason)
		}
	}
}

// endless is a harness whose owners are never told to halt.
type endless struct{ spawning }

func (d endless) SpawnOwner(ctx context.Context) (OwnerProcess, error) {
	p, err := d.spawning.SpawnOwner(ctx)
	return unhalting{p}, err
}

type unhalting struct{ OwnerProcess }

func (u unhalting) Write(b []byte) (int, error) {
	s := string(b)
	if i := strings.Index(s, `"halt":`); i >= 0 {
		j := i + strings.IndexByte(s[i:], ',')
		s = s[:i] + `"halt":0` + s[j:]
	}
	if _, err := u.OwnerProcess.Write([]byte(s)); err != nil {
		return 0, err
	}
	return len(b), nil
}

type unspawnable struct{ *mini }

func (unspawnable) SpawnOwner(context.Context) (OwnerProcess, error) {
	return nil, errors.New("no processes here")
}
