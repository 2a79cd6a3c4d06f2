package scope

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// Bounds of what one commit carries for several callers. The command that reaches
// a bound is still in it.
const (
	batchCommands = 64
	batchBytes    = 4 << 20
)

// call is one command on its way.
type call struct {
	command ticket.Command
	done    chan struct{} // closed once receipt and err are set
	receipt ticket.Receipt
	err     error
}

func (c *call) answer(r ticket.Receipt, err error) {
	c.receipt, c.err = r, err
	close(c.done)
}

// queue holds the commands that nobody has taken yet, oldest first.
type queue struct {
	mu    sync.Mutex
	calls []*call
}

func (q *queue) add(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, c)
}

// remove takes c out; false: somebody has taken it already.
func (q *queue) remove(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, x := range q.calls {
		if x == c {
			q.calls = append(q.calls[:i], q.calls[i+1:]...)
			return true
		}
	}
	return false
}

// take gives the oldest calls, at most batchCommands.
func (q *queue) take() []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.calls), batchCommands)
	batch := q.calls[:n:n]
	q.calls = q.calls[n:]
	return batch
}

// Do carries out a command, or refuses it with a *ticket.Error. Commands that come
// while another one is being committed share the next commit, one entry each.
//
// An operation that was carried out before gives its stored receipt, and nothing is
// published (T-1). A command that lost to another handle is decided anew, at most
// MaxRereads times, then it is a ticket.RevisionConflict (T-2); Command.OnlyAt makes
// it one at once. A refusal is given only of the newest state.
//
// Any other error says that the command must not be counted on, and not that it did
// not happen: the same command again happens once. store.ErrUnknownOutcome makes the
// handle read-only until Reopen (T-3). Once the command was sent, ctx is not looked
// at any more: the answer comes within a few of Config.Timeout.
func (s *Scope) Do(ctx context.Context, c ticket.Command) (ticket.Receipt, error) {
	if err := s.begin(ctx); err != nil {
		return ticket.Receipt{}, err
	}
	defer s.busy.Done()
	mine := &call{command: c, done: make(chan struct{})}
	s.queue.add(mine)
	select {
	case <-mine.done:
	case s.turn <- struct{}{}:
		s.lead(mine)
		s.give()
	case <-ctx.Done():
		if s.queue.remove(mine) {
			return ticket.Receipt{}, context.Cause(ctx)
		}
		<-mine.done
	}
	return mine.receipt, mine.err
}

// lead serves the queue until mine is served. The caller has the turn.
func (s *Scope) lead(mine *call) {
	for {
		select {
		case <-mine.done:
			return
		default:
			s.serve(s.queue.take())
		}
	}
}

// serve answers every call of a batch.
func (s *Scope) serve(batch []*call) {
	ctx := context.Background() // what several callers wait for, none of them cancels
	newest, rereads := false, 0
	for len(batch) > 0 {
		v := s.view.Load()
		if batch = s.replay(v, batch); len(batch) == 0 {
			return
		}
		if err := s.writable(); err != nil {
			fail(batch, err)
			return
		}
		p := s.plan(v, batch)
		var err error
		switch {
		case len(p.entries) > 0 || s.weak:
			err = s.commit(ctx, v, p.view, p.entries)
		case !newest:
			_, err = s.reread(ctx)
			newest = true
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil:
			p.answer(batch[:p.handled])
			batch = batch[p.handled:]
		case !errors.Is(err, store.ErrConflict):
			fail(batch, err)
			return
		case rereads == MaxRereads:
			for _, c := range batch {
				c.answer(ticket.Receipt{}, &ticket.Error{
					Op: "commit", Key: c.command.OperationID, Kind: ticket.RevisionConflict, Err: err,
					Detail: fmt.Sprintf("other writers were faster %d times; give the command again", rereads+1),
				})
			}
			return
		default:
			rereads++
			if _, err := s.reread(ctx); err != nil {
				fail(batch, err)
				return
			}
			newest = true
		}
	}
}

func fail(batch []*call, err error) {
	for _, c := range batch {
		c.answer(ticket.Receipt{}, err)
	}
}

// replay answers the calls whose receipt is stored, and gives the others. What the
// store holds less durably than required is no success yet (S-5).
func (s *Scope) replay(v *view, batch []*call) []*call {
	if s.weak {
		return batch
	}
	var left []*call
	for _, c := range batch {
		if _, known := v.state.Receipt(c.command.OperationID); known {
			if d, err := v.state.Decide(c.command); err == nil && d.Replayed {
				c.answer(d.Receipt, nil)
				continue
			}
		}
		left = append(left, c)
	}
	return left
}

// plan is what a batch, or the first calls of it, would do to a view.
type plan struct {
	view    *view // what would be published, without mark
	entries [][]byte
	handled int // calls that are part of it
	results []result
}

type result struct {
	receipt ticket.Receipt
	err     error
}

func (p *plan) answer(calls []*call) {
	for i, c := range calls {
		c.answer(p.results[i].receipt, p.results[i].err)
	}
}

// plan decides calls in order, each on the state that the ones before it make.
func (s *Scope) plan(v *view, batch []*call) *plan {
	p := &plan{view: &view{state: v.state, head: v.head}}
	size := 0
	for _, c := range batch {
		d, err := p.view.state.Decide(c.command)
		var data []byte
		if err == nil && !d.Replayed {
			d.Entry.Prev = p.view.head.Tip
			data, err = s.encode(c.command, &d.Entry)
		}
		if err == nil && !d.Replayed {
			size += len(data)
			p.entries = append(p.entries, data)
			p.view.state = d.Next
			p.view.head.follow(d.Next, data)
		}
		p.results = append(p.results, result{d.Receipt, err})
		if p.handled++; size >= batchBytes {
			break
		}
	}
	return p
}

// encode is an entry's bytes, refused where the store would not take them: then
// only its own command fails, and not those that share its commit.
func (s *Scope) encode(c ticket.Command, e *ticket.Entry) ([]byte, error) {
	data, err := e.Canonical()
	if err != nil {
		return nil, &ticket.Error{Op: c.Request.Type(), Key: c.OperationID, Kind: ticket.InvalidTransition, Detail: "its entry can't be written as JSON", Err: err}
	}
	if most := s.mostEntryBytes(); int64(len(data)) > most {
		return nil, &ticket.Error{Op: c.Request.Type(), Key: c.OperationID, Kind: ticket.ContextBudgetExceeded, Detail: fmt.Sprintf("its entry has %d bytes; the store takes %d; ask for less at once", len(data), most)}
	}
	return data, nil
}

func (s *Scope) mostEntryBytes() int64 {
	if n := s.limits.EntryBytes; n > 0 {
		return min(n, store.MaxEntryBytes)
	}
	return store.MaxEntryBytes
}
