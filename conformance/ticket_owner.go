package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"

	"github.com/loophost/loophost/host/store"
)

// ticketOrder tells an owner's process to live a ticket's life, and where in it to halt,
// so that the suite can kill it there (M-4).
type ticketOrder struct {
	Life ticketLife `json:"life"`
	// Halt is the number of the write at which the process halts, from 1; 0: at none.
	Halt  int  `json:"halt"`
	After bool `json:"after"` // halt when the store has answered, not before it is asked
	// InAgent: it halts when a local task's agent is called.
	InAgent bool `json:"in_agent"`
}

// ticketLine is what the process says; one field is set.
type ticketLine struct {
	Fact  *fact        `json:"fact,omitempty"`  // a step was acknowledged
	Wrote *ticketWrite `json:"wrote,omitempty"` // the store answered a write
	Agent bool         `json:"agent,omitempty"` // the agent was called
	Halt  string       `json:"halt,omitempty"`  // here the process does nothing more until it is killed
	End   *ticketEnd   `json:"end,omitempty"`   // the life is over
}

// ticketWrite is a write that the store answered.
type ticketWrite struct {
	Op   Op         `json:"op"`
	Key  store.Key  `json:"key"`
	Mark store.Mark `json:"mark"` // of the record then; zero where it was refused, or the store does not say
}

// ticketEnd is the process's last line.
type ticketEnd struct {
	Error string `json:"error"`
}

// serve lives the life in this process. The error says that the suite is gone.
func (o ticketOrder) serve(ctx context.Context, st store.Store, in *bufio.Reader, out io.Writer) error {
	h := &halting{order: o, in: in, out: json.NewEncoder(out)}
	err := o.Life.live(ctx, haltingStore(st, h), func(f fact) { h.say(ticketLine{Fact: &f}) }, func() {
		h.say(ticketLine{Agent: true})
		if o.InAgent {
			h.halt("agent")
		}
	})
	var end ticketEnd
	if err != nil {
		end.Error = err.Error()
	}
	h.say(ticketLine{End: &end})
	return h.lost
}

// halting counts the writes of a life, tells of each, and halts at one.
type halting struct {
	order ticketOrder
	in    *bufio.Reader
	n     atomic.Int64

	mu   sync.Mutex
	out  *json.Encoder
	lost error // the suite is gone
}

func (h *halting) say(l ticketLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = h.out.Encode(l)
	}
}

// halt waits for the end of this process. The suite never answers; if it is gone, the
// life goes on for nobody.
func (h *halting) halt(where string) {
	h.say(ticketLine{Halt: where})
	_, _ = readLine(h.in)
}

// write makes one write of a record.
func (h *halting) write(op Op, key store.Key, do func() (store.Mark, error)) {
	here := h.n.Add(1) == int64(h.order.Halt)
	if here && !h.order.After {
		h.halt(string(op))
	}
	mark, err := do()
	if err != nil {
		mark = store.Mark{}
	}
	h.say(ticketLine{Wrote: &ticketWrite{op, key, mark}})
	if here && h.order.After {
		h.halt(string(op))
	}
}

// haltingWrites is a store whose writes h counts. Renewing a lease goes on beside a life
// at no fixed place in it, and reading changes nothing: neither is counted.
type haltingWrites struct {
	store.Store
	h *halting
}

// haltingStore keeps the ability to watch, as the host uses it.
func haltingStore(st store.Store, h *halting) store.Store {
	s := haltingWrites{st, h}
	if w, ok := st.(store.SignalWatcher); ok {
		return struct {
			haltingWrites
			store.SignalWatcher
		}{s, w}
	}
	return s
}

func (s haltingWrites) Create(ctx context.Context, key store.Key, c store.Commit) (ack store.Ack, err error) {
	s.h.write(OpCreate, key, func() (store.Mark, error) {
		ack, err = s.Store.Create(ctx, key, c)
		return ack.Mark, err
	})
	return ack, err
}

func (s haltingWrites) Acquire(ctx context.Context, key store.Key, claim store.Claim) (f store.Fence, rec store.Record, err error) {
	s.h.write(OpAcquire, key, func() (store.Mark, error) {
		f, rec, err = s.Store.Acquire(ctx, key, claim)
		return rec.Mark, err
	})
	return f, rec, err
}

func (s haltingWrites) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (ack store.Ack, err error) {
	s.h.write(OpCommit, key, func() (store.Mark, error) {
		ack, err = s.Store.Commit(ctx, key, f, c)
		return ack.Mark, err
	})
	return ack, err
}

func (s haltingWrites) Resolve(ctx context.Context, key store.Key, f store.Fence, id string) (out store.Outcome, err error) {
	s.h.write(OpResolve, key, func() (store.Mark, error) {
		out, err = s.Store.Resolve(ctx, key, f, id)
		return store.Mark{}, err
	})
	return out, err
}

func (s haltingWrites) Release(ctx context.Context, key store.Key, f store.Fence) (err error) {
	s.h.write(OpRelease, key, func() (store.Mark, error) {
		err = s.Store.Release(ctx, key, f)
		return store.Mark{}, err
	})
	return err
}

func (s haltingWrites) Delete(ctx context.Context, key store.Key, f store.Fence) (err error) {
	s.h.write(OpDelete, key, func() (store.Mark, error) {
		err = s.Store.Delete(ctx, key, f)
		return store.Mark{}, err
	})
	return err
}
