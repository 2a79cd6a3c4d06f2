package conformance

import (
	"bytes"
	"context"
	"time"

	"github.com/loophost/loophost/host/store"
)

// The part of mini that is about owners: acquire, renew, release, signals.

func (h *miniHandle) Acquire(ctx context.Context, key store.Key, c store.Claim) (store.Fence, store.Record, error) {
	fail := func(err error) (store.Fence, store.Record, error) { return store.Fence{}, store.Record{}, err }
	if err := h.usable(ctx, "acquire", key); err != nil {
		return fail(err)
	}
	if err := h.valid(key); err != nil {
		return fail(err)
	}
	shared := key.Kind.Shared() && h.is("shared records can be acquired")
	if !h.is("checks no claim") && !shared && key.Validate() == nil {
		if err := c.Validate(key); err != nil {
			return fail(err)
		}
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("acquire", key)
	if err != nil {
		return fail(err)
	}
	live := !r.fence.IsZero() && (!h.m.now.After(r.expires) || h.is("leases never expire"))
	busy := live && (!c.Force || h.is("force waits too")) && !h.is("nobody is ever busy")
	if h.is("checks, then acquires") {
		h.m.mu.Unlock()
		pause()
		h.m.mu.Lock()
	}
	switch {
	case c.Generation != "" && c.Generation != r.generation && !h.is("ignores the expected generation"):
		return fail(&store.Error{Op: "acquire", Key: key, Kind: store.ErrConflict})
	case busy:
		e := &store.Error{Op: "acquire", Key: key, Kind: store.ErrBusy, Holder: store.Holder{Fence: r.fence, Expires: r.expires}}
		if h.is("busy names no holder") {
			e.Holder = store.Holder{}
		}
		return fail(e)
	case c.Seen != (store.Mark{}) && !r.saw(c.Seen) && !h.is("ignores what a claim saw"):
		return fail(&store.Error{Op: "acquire", Key: key, Kind: store.ErrRegressed})
	case c.Seen != (store.Mark{}) && c.Seen.Revision < r.mark.Revision && h.is("a claim must have seen the newest state"):
		return fail(&store.Error{Op: "acquire", Key: key, Kind: store.ErrRegressed})
	}
	if r.fence.Run != c.Run && !h.is("signals hit the next run") {
		r.signals = nil
	}
	switch {
	case h.is("generations are not minted again") && r.generation != "":
	case h.is("a run keeps its generation") && r.fence.Run == c.Run:
	default:
		r.generation = newUUID()
	}
	r.fence = store.Fence{Birth: r.mark.Birth, Generation: r.generation, Owner: c.Owner, Run: c.Run}
	if h.is("cuts long owners") {
		r.fence.Owner = c.Owner[:min(len(c.Owner), 64)]
	}
	r.by, r.released = h, false
	r.expires = h.m.now.Add(ttl(c.TTL))
	if c.TTL == time.Nanosecond {
		r.expires = h.m.now.Add(-1)
	}
	if h.is("acquire moves the revision") {
		r.mark.Revision++
	}
	return r.fence, h.view(r), nil
}

func ttl(d time.Duration) time.Duration {
	if d <= 0 {
		return store.DefaultTTL
	}
	return d
}

func (r *miniRecord) saw(seen store.Mark) bool {
	if seen.Birth != r.mark.Birth || seen.Revision > uint64(len(r.marks)) || seen.Revision == 0 {
		return false
	}
	return seen.Chain == "" || r.marks[seen.Revision-1].Chain == seen.Chain
}

func (h *miniHandle) owned(ctx context.Context, op string, key store.Key, f store.Fence, do func(*miniRecord)) error {
	if err := h.usable(ctx, op, key); err != nil {
		return err
	}
	if err := h.valid(key); err != nil {
		return err
	}
	if key.Kind.Shared() {
		return &store.Error{Op: op, Key: key, Kind: store.ErrUnsupported}
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record(op, key)
	if err != nil {
		return err
	}
	if err := h.holds(op, r, f); err != nil {
		return err
	}
	do(r)
	return nil
}

func (h *miniHandle) Renew(ctx context.Context, key store.Key, f store.Fence, d time.Duration) error {
	return h.owned(ctx, "renew", key, f, func(r *miniRecord) {
		if !h.is("renew does nothing") {
			r.expires = h.m.now.Add(ttl(d))
		}
		if h.is("renew moves the revision") {
			r.mark.Revision++
		}
	})
}

func (h *miniHandle) Release(ctx context.Context, key store.Key, f store.Fence) error {
	return h.owned(ctx, "release", key, f, func(r *miniRecord) {
		if h.is("release only ends the lease") {
			r.expires = h.m.now.Add(-1)
			return
		}
		r.fence, r.released = store.Fence{}, true
		if !h.is("signals hit the next run") {
			r.signals = nil
		}
		if h.is("release forgets the generation") {
			r.generation = ""
		}
	})
}

func (h *miniHandle) Signal(ctx context.Context, key store.Key, s store.Signal) error {
	if err := h.usable(ctx, "signal", key); err != nil {
		return err
	}
	if err := h.valid(key); err != nil {
		return err
	}
	if !h.is("takes any signal") && key.Validate() == nil {
		if err := s.Validate(key); err != nil {
			return err
		}
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("signal", key)
	if err != nil {
		return err
	}
	if s.Run != r.fence.Run || s.Run == "" {
		if !h.is("signals reach whoever owns the record") || r.fence.IsZero() {
			return &store.Error{Op: "signal", Key: key, Kind: store.ErrNotFound}
		}
		s.Run = r.fence.Run
	}
	if h.is("signals live in the handle") {
		h.signals = append(h.signals, s)
		return nil
	}
	if h.is("signals move the revision") {
		r.mark.Revision++
	}
	for i, have := range r.signals {
		if have.Kind == s.Kind && !h.is("keeps every signal") {
			return nil
		}
		if h.is("a signal replaces the one before") {
			r.signals[i] = s
			return nil
		}
	}
	if h.is("stores a reason as text without NUL") {
		s.Reason = string(bytes.ReplaceAll([]byte(s.Reason), []byte{0}, nil))
	}
	r.signals = append(r.signals, s)
	if !h.is("wakes nobody") {
		close(h.m.posted)
		h.m.posted = make(chan struct{})
	}
	return nil
}

func (h *miniHandle) WatchSignals(ctx context.Context, key store.Key, f store.Fence) (<-chan store.Signal, error) {
	if err := h.usable(ctx, "watch", key); err != nil {
		return nil, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("watch", key)
	if err != nil {
		return nil, err
	}
	if !h.is("watches under any fence") {
		if err := h.holds("watch", r, f); err != nil {
			return nil, err
		}
	}
	out := make(chan store.Signal)
	go h.watch(ctx, r, f.Run, out)
	return out, nil
}

func (h *miniHandle) watch(ctx context.Context, r *miniRecord, run string, out chan<- store.Signal) {
	if !h.is("a watch never ends") {
		defer close(out)
	}
	sent := map[store.SignalKind]bool{}
	for first := true; ; first = false {
		h.m.mu.Lock()
		posted := h.m.posted
		var signals []store.Signal
		if r.fence.Run == run {
			signals = r.pending()
		}
		h.m.mu.Unlock()
		for _, s := range signals {
			if sent[s.Kind] || first && h.is("a watch misses what is pending") {
				continue
			}
			select {
			case out <- s:
				sent[s.Kind] = true
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-posted:
		case <-ctx.Done():
			return
		}
	}
}
