package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/loophost/loophost/host/store"
)

// witness is what the suite knows of a killed owner: the record as the last
// acknowledgement left it, and what was on its way.
type witness struct {
	calls   []Op        // that the store was asked, in order
	acked   snapshot    // the record as it was acknowledged last
	sent    *crashCall  // a call whose answer is not known; nil: none
	fence   store.Fence // of the last acquire that was answered
	freed   bool        // a release was answered
	effects []string    // what began, in order
	halted  Op          // the owner halted at this call; "": it did not
	killed  bool
	end     *crashEnd // nil: it did not come to its end
}

// hear takes one line in.
func (w *witness) hear(l crashLine) error {
	switch {
	case l.Sent != nil:
		w.sent = l.Sent
		w.calls = append(w.calls, l.Sent.Op)
	case l.Done != nil:
		return w.answered(*l.Done)
	case l.Did != "":
		w.effects = append(w.effects, l.Did)
	case l.Halt != "":
		w.halted = l.Halt
	case l.End != nil:
		w.end = l.End
	}
	return nil
}

// answered takes in what the store said to the last call.
func (w *witness) answered(r crashReply) error {
	c := w.sent
	if c == nil {
		return failf("the owner tells of an answer to nothing")
	}
	w.sent = nil
	if r.Error != "" {
		if c.Op == OpAcquire && w.acked.absent {
			return nil // a session that is not there yet
		}
		return failf("%s of a run without faults: want success, got %s", c.Op, r.Error)
	}
	switch c.Op {
	case OpCreate, OpCommit:
		next := w.acked.with(*c)
		if c.Op == OpCreate {
			next.record.Mark.Birth = r.Mark.Birth
		}
		w.acked = next
		return wantEqual(fmt.Sprintf("the acknowledged mark of %s", cellName(w.calls)), r.Mark, next.record.Mark)
	case OpAcquire:
		w.fence, w.freed = r.Fence, false
		return wantEqual("the mark of an acquired record", r.Mark, w.acked.record.Mark)
	case OpRelease:
		w.freed = true
	}
	return nil
}

// with is the record that commit c makes of s.
func (s snapshot) with(c crashCall) snapshot {
	next := snapshot{record: s.record, log: append([]store.Entry(nil), s.log...)}
	m := &next.record.Mark
	m.Revision++
	m.Chain = store.Chain(m.Chain, store.Commit{ID: c.ID, Head: c.Head, Entries: c.Entries})
	for _, e := range c.Entries {
		next.log = append(next.log, store.Entry{Seq: uint64(len(next.log)) + 1, Revision: m.Revision, Data: e})
	}
	next.record.Head, next.record.LastCommitID, next.record.LogLength = c.Head, c.ID, uint64(len(next.log))
	return next
}

// name is the cell of the matrix at which the owner was killed.
func (w *witness) name(after bool) string {
	if w.halted != "" && !after {
		return cellName(append(w.calls[:len(w.calls):len(w.calls)], w.halted))
	}
	return cellName(w.calls)
}

// cellName names the last of calls by its operation and how many of it there were.
func cellName(calls []Op) string {
	if len(calls) == 0 {
		return "none"
	}
	last, n := calls[len(calls)-1], 0
	for _, op := range calls {
		if op == last {
			n++
		}
	}
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(string(last), " ", "-"), n)
}

// count is how many effects of a name began.
func (w *witness) count(effect string) int {
	n := 0
	for _, x := range w.effects {
		if x == effect {
			n++
		}
	}
	return n
}

// killedRun starts an owner's process with order, listens, and kills it: when it
// halts, or, with during above 0, as soon as that many calls were on their way.
// An owner that comes to its end is not killed.
func killedRun(ctx context.Context, e *Env, session string, acked snapshot, order crashOrder, during int) (w *witness, err error) {
	p, err := e.Harness.(Spawner).SpawnOwner(ctx)
	if err != nil {
		return nil, failf("start an owner's process: %w", err)
	}
	w = &witness{acked: acked}
	defer func() {
		if err != nil && !w.killed {
			err = errors.Join(err, p.Kill()) // it may wait for somebody who listens
		}
		err = errors.Join(err, p.Close())
	}()
	if err := json.NewEncoder(p).Encode(ownerOrder{Session: session, Crash: &order}); err != nil {
		return w, failf("talk to the owner's process: %w", err)
	}
	in := bufio.NewReader(p)
	for {
		line, err := readLine(in)
		if w.killed && err != nil {
			return w, nil // what it could still say is heard; half a line says nothing
		}
		if err != nil {
			return w, failf("listen to the owner's process: %w", err)
		}
		var l crashLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return w, failf("the owner says %q: %w", brief([]byte(line)), err)
		}
		if err := w.hear(l); err != nil {
			return w, err
		}
		if w.end != nil && !w.killed {
			_, err := readLine(in)
			if !errors.Is(err, io.EOF) {
				return w, failf("want nothing after the owner's end, got %w", orNone(err))
			}
			return w, nil
		}
		if !w.killed && (w.halted != "" || during > 0 && len(w.calls) == during) {
			w.killed = true
			if err := p.Kill(); err != nil {
				return w, failf("kill the owner's process: %w", err)
			}
		}
	}
}
