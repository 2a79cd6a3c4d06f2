package memstore

import (
	"context"

	"github.com/loophost/loophost/host/store"
)

func (h *handle) WatchSignals(ctx context.Context, key store.Key, f store.Fence) (<-chan store.Signal, error) {
	const op = "watch"
	if err := h.on(ctx, op, key, func(r *record) error { return r.state.Owned(op, key, f) }); err != nil {
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
		h.engine.m.mu.Lock()
		posted := h.engine.m.posted
		var signals []store.Signal
		if r := h.engine.m.records[key]; r != nil {
			signals = r.state.Pending(run)
		}
		h.engine.m.mu.Unlock()
		for _, s := range signals {
			if sent[s.Kind] {
				continue
			}
			select {
			case out <- s:
				sent[s.Kind] = true
			case <-ctx.Done():
				return
			case <-h.engine.done:
				return
			}
		}
		select {
		case <-posted:
		case <-ctx.Done():
			return
		case <-h.engine.done:
			return
		}
	}
}
