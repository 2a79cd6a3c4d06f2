package redis

import (
	"context"
	"time"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Signal posts to the mailbox of the run that owns the record (S-13).
func (s *Store) Signal(ctx context.Context, key store.Key, sig store.Signal) error {
	const op = "signal"
	if err := sig.Validate(key); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return s.simply(ctx, op, key, func(name string) (reply, error) {
		text, err := format.Signal(sig)
		if err != nil {
			return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported, Detail: "the signal's time has no text form", Err: err}
		}
		r, err := s.eval(ctx, op, key, signalScript, []string{name}, sig.Run, "sig:"+string(sig.Kind), text)
		if err == nil && r.verdict() == "other" {
			err = &store.Error{Op: op, Key: key, Kind: store.ErrNotFound, Detail: "the run " + sig.Run + " does not own the record"}
		}
		return r, err
	})
}

// WatchSignals reads the mailbox of f's run every Config.SignalPoll, and sends what is
// new in it. A poll needs no connection of its own and no permission for channels, and
// goes on after a failover. It ends with ctx, with the store, and when f is fenced.
func (s *Store) WatchSignals(ctx context.Context, key store.Key, f store.Fence) (<-chan store.Signal, error) {
	const op = "watch"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return nil, err
	}
	if err := key.Validate(); err != nil {
		leave()
		return nil, err
	}
	found, err := s.mailbox(ctx, op, key, f)
	if err != nil {
		leave()
		return nil, err
	}
	out := make(chan store.Signal)
	go func() {
		defer leave()
		defer close(out)
		s.watch(ctx, key, f, found, out)
	}()
	return out, nil
}

func (s *Store) watch(ctx context.Context, key store.Key, f store.Fence, found []store.Signal, out chan<- store.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // a poll under way ends when the store does
		select {
		case <-s.done:
			cancel()
		case <-stop:
		}
	}()
	tick := time.NewTicker(s.c.SignalPoll)
	defer tick.Stop()
	sent := map[store.SignalKind]bool{}
	for {
		for _, sig := range found {
			if sent[sig.Kind] {
				continue
			}
			select {
			case out <- sig:
				sent[sig.Kind] = true
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var err error
		found, err = s.mailbox(ctx, "watch", key, f)
		switch store.KindOf(err) {
		case store.ErrFenced, store.ErrNotFound:
			return // nothing will be addressed to this run any more
		}
	}
}

// mailbox reads the signals that are pending for the owner f.
func (s *Store) mailbox(ctx context.Context, op string, key store.Key, f store.Fence) ([]store.Signal, error) {
	name := s.name(key)
	r, err := s.eval(ctx, op, key, mailboxScript, []string{name}, format.Fence(f))
	if err != nil {
		return nil, err
	}
	if r.verdict() != "ok" {
		return nil, refused(op, key, r)
	}
	found, err := pending(r, 1, f.Run)
	if err != nil {
		return nil, corrupt(op, key, "the mailbox is damaged", err)
	}
	return found, nil
}
