package fs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// watchEvery is how often a watch looks into the mailbox.
const watchEvery = 200 * time.Millisecond

const signalPrefix = "signal-"

var signalKinds = [...]store.SignalKind{store.SignalStop, store.SignalCancel}

func signalName(run string, k store.SignalKind) string {
	return signalPrefix + run + "-" + string(k) + ".json"
}

// Signal puts a small file into the record's folder. It needs neither fence nor
// commit lock, so a hung owner can be told as well (S-13).
func (s *Store) Signal(ctx context.Context, key store.Key, sig store.Signal) error {
	const op = "signal"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return err
	}
	defer leave()
	if err := sig.Validate(key); err != nil {
		return err
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return err
	}
	defer s.unuse(r)
	if err := r.look(ctx); err != nil {
		return fail(op, key, err)
	}
	switch {
	case r.st.deleted:
		return fail(op, key, r.deleted())
	case sig.Run == "" || sig.Run != r.st.fence.Run:
		return fail(op, key, &store.Error{Kind: store.ErrNotFound, Detail: "the run " + sig.Run + " does not own the record"})
	}
	return fail(op, key, r.post(sig))
}

// post puts the signal into the mailbox and rings.
func (r *record) post(sig store.Signal) error {
	name := signalName(sig.Run, sig.Kind)
	if r.exists(name) {
		// Whoever posted it may have come no further than this.
		return errors.Join(r.dir.Sync("."), r.ring())
	}
	sig.Time = sig.Time.UTC().Round(0)
	b, err := format.EncodeSignal(sig)
	if err != nil {
		return err
	}
	if err := r.dir.WriteAtomic(name, b); err != nil {
		return err
	}
	return r.ring() // also at locks that were made since this record was looked at
}

// mail is the mailbox of one generation's run, as it was when the bell had rung so often.
type mail struct {
	generation string
	bell       int64
	signals    []store.Signal
}

// pending are the signals for run, which are looked for when the bell of the commit
// lock has rung since the last time.
func (r *record) pending(run string) []store.Signal {
	if run == "" || run != r.st.fence.Run {
		return nil
	}
	if r.bell == silent || r.mail.generation != r.st.fence.Generation || r.mail.bell != r.bell {
		r.mail = mail{r.st.fence.Generation, r.bell, r.mailbox(run)}
	}
	return slices.Clone(r.mail.signals)
}

func (r *record) mailbox(run string) []store.Signal {
	var out []store.Signal
	for _, k := range signalKinds {
		if !r.exists(signalName(run, k)) {
			continue
		}
		b, err := r.dir.ReadFile(signalName(run, k))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			r.s.log.Warn("a signal can't be read; it counts without its reason", "file", signalName(run, k), "err", err)
		}
		out = append(out, format.ParseSignal(b, k, run))
	}
	return out
}

// WatchSignals looks into the mailbox five times a second. Errors: ErrNotFound, ErrFenced.
func (s *Store) WatchSignals(ctx context.Context, key store.Key, f store.Fence) (<-chan store.Signal, error) {
	const op = "watch"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return nil, err
	}
	r, err := s.watchable(ctx, key, f)
	if err != nil {
		leave()
		return nil, fail(op, key, err)
	}
	out := make(chan store.Signal)
	go func() {
		defer leave()
		defer close(out)
		s.watch(ctx, r, f.Run, out)
		if err := r.close(); err != nil {
			s.log.Warn("a record was not closed", "kind", key.Kind, "id", key.ID, "err", err)
		}
	}()
	return out, nil
}

// watchable opens the record apart from the handle's own, so that a watch never waits for a commit.
func (s *Store) watchable(ctx context.Context, key store.Key, f store.Fence) (*record, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	r := newRecord(s, key)
	err := r.look(ctx)
	switch {
	case err != nil:
	case r.st.deleted:
		err = r.deleted()
	case f.IsZero() || f != r.st.currentFence(key.Kind):
		err = r.fenced()
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (s *Store) watch(ctx context.Context, r *record, run string, out chan<- store.Signal) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	sent := map[store.SignalKind]bool{}
	for {
		for _, sig := range r.mailbox(run) {
			if sent[sig.Kind] {
				continue
			}
			select {
			case out <- sig:
				sent[sig.Kind] = true
			case <-ctx.Done():
				return
			case <-s.done:
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-s.done:
			return
		}
	}
}
