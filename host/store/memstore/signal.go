package memstore

import (
	"context"

	"github.com/loophost/loophost/host/store"
)

// pending is a copy of the signals addressed to run, or nil.
func (r *record) pending(run string) []store.Signal {
	if run == "" || run != r.fence.Run {
		return nil
	}
	return append([]store.Signal(nil), r.signals...)
}

func (h *handle) Signal(ctx context.Context, key store.Key, s store.Signal) error {
	const op = "signal"
	if err := h.usable(ctx, op, key); err != nil {
		return err
	}
	if err := s.Validate(key); err != nil {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return err
	}
	if s.Run == "" || s.Run != r.fence.Run {
		return &store.Error{Op: op, Key: key, Kind: store.ErrNotFound, Detail: "the run " + s.Run + " does not own the record"}
	}
	for _, have := range r.signals {
		if have.Kind == s.Kind {
			return nil
		}
	}
	s.Time = s.Time.UTC().Round(0)
	r.signals = append(r.signals, s)
	if len(r.signals) == 2 && r.signals[0].Kind == store.SignalCancel {
		r.signals[0], r.signals[1] = r.signals[1], r.signals[0] // stop first, as a page of two has one order
	}
	close(h.m.posted)
	h.m.posted = make(chan struct{})
	return nil
}

func (h *handle) WatchSignals(ctx context.Context, key store.Key, f store.Fence) (<-chan store.Signal, error) {
	const op = "watch"
	if err := h.usable(ctx, op, key); err != nil {
		return nil, err
	}
	if err := key.Validate(); err != nil {
		return nil, err
	}
	h.m.mu.Lock()
	_, err := h.owned(op, key, f)
	h.m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	out := make(chan store.Signal)
	go h.watch(ctx, key, f.Run, out)
	return out, nil
}

func (h *handle) watch(ctx context.Context, key store.Key, run string, out chan<- store.Signal) {
	defer close(out)
	sent := map[store.SignalKind]bool{}
	for {
		h.m.mu.Lock()
		posted := h.m.posted
		var signals []store.Signal
		if r := h.m.records[key]; r != nil {
			signals = r.pending(run)
		}
		h.m.mu.Unlock()
		for _, s := range signals {
			if sent[s.Kind] {
				continue
			}
			select {
			case out <- s:
				sent[s.Kind] = true
			case <-ctx.Done():
				return
			case <-h.done:
				return
			}
		}
		select {
		case <-posted:
		case <-ctx.Done():
			return
		case <-h.done:
			return
		}
	}
}
