package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/store"
)

// writer commits a session's head and the entries that are new since the last
// commit, under one fence. It knows what is durable and what is in doubt:
//
//	append ──▶ pending ──commit──▶ acknowledged
//	               ▲                  ▲
//	               │ never            │ applied
//	               └──── in doubt ────┘        (settled by Store.Resolve, S-4)
//
// It is used by one goroutine at a time.
type writer struct {
	store   store.Store
	key     store.Key
	fence   store.Fence
	require store.Durability
	newID   func() string
	timeout time.Duration

	mark    store.Mark // the last state known to be in the store
	length  uint64     // log entries in it
	pending []pendingEntry
	spare   []pendingEntry // room for what the next commit carries
	doubt   *doubt
	// broken ends all writing: the record is another owner's, or lost what it acknowledged (L-21, S-6).
	broken error
	// acknowledged is told of entries as soon as they are known to be durable.
	acknowledged func(entries []pendingEntry, first uint64, revision uint64)
}

type pendingEntry struct {
	entry Entry
	data  []byte
}

// doubt is a commit of which it is not known whether it was applied.
type doubt struct {
	id      string
	carried []pendingEntry // the pending entries, then the trailer
}

// roomForHead is what a commit needs beside its entries: the head and the trailer.
const roomForHead = 2 * store.MaxHeadBytes

// append adds an entry to what the next commit carries and returns its sequence
// number. One that no store takes is refused here (store.ErrTooLarge): once pending
// it would fail every later commit, that of the run's failure too.
// message is the JSON of its message; nil: it has none.
func (w *writer) append(e Entry, message []byte) (seq uint64, err error) {
	data, err := e.encode(message)
	if err != nil {
		return 0, err
	}
	size := len(data)
	for _, p := range w.pending {
		size += len(p.data)
	}
	if len(data) > store.MaxEntryBytes || size > store.MaxCommitBytes-roomForHead {
		return 0, &store.Error{
			Op: "append", Key: w.key, Kind: store.ErrTooLarge,
			Detail: fmt.Sprintf("a %s entry of %d bytes; at most %d are allowed, and %d for what one commit carries", e.Type, len(data), store.MaxEntryBytes, store.MaxCommitBytes-roomForHead),
		}
	}
	w.pending = append(w.pending, pendingEntry{entry: e, data: data})
	return w.length + uint64(len(w.pending)), nil
}

// commit makes head, all pending entries and then trailer durable (L-19). A
// trailer belongs to its commit alone: it is dropped with a commit that never
// applies. The error matches store.ErrFenced where another owner took over; any
// other error is a checkpoint failure, after which the writer is in doubt until a
// later commit succeeds.
func (w *writer) commit(ctx context.Context, head []byte, trailer Entry) ([]store.Signal, error) {
	if err := w.settleDoubt(ctx); err != nil {
		return nil, err
	}
	data, err := trailer.Encode()
	if err != nil {
		return nil, err
	}
	last := pendingEntry{entry: trailer, data: data}
	signals, err := w.attempt(ctx, head, last)
	if !errors.Is(err, store.ErrUnknownOutcome) {
		return signals, err
	}
	signals, applied, rerr := w.resolve(ctx)
	switch {
	case rerr != nil:
		return nil, fmt.Errorf("%w (resolving it failed: %w)", err, rerr)
	case applied:
		return signals, nil
	}
	// The store answered that it never applies: once more, under a new id.
	signals, err = w.attempt(ctx, head, last)
	if errors.Is(err, store.ErrUnknownOutcome) {
		again, applied, rerr := w.resolve(ctx)
		if rerr == nil && applied {
			return again, nil
		}
	}
	return signals, err
}

// attempt sends one commit.
func (w *writer) attempt(ctx context.Context, head []byte, trailer pendingEntry) ([]store.Signal, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	carried := append(append(w.spare[:0], w.pending...), trailer)
	w.spare = nil // until it is known that nobody keeps it
	c := store.Commit{ID: w.newID(), After: w.mark, Head: head, Require: w.require, Entries: make([][]byte, len(carried))}
	for i, p := range carried {
		c.Entries[i] = p.data
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	ack, err := w.store.Commit(ctx, w.key, w.fence, c)
	if err != nil {
		err = w.note(err)
		if w.broken == nil {
			w.doubt = &doubt{id: c.ID, carried: carried}
		}
		return nil, err
	}
	return w.accept(ack, carried)
}

// accept takes an Ack: the entries carried are in the store. It is an error where
// the store reached less durability than the run requires (S-5).
func (w *writer) accept(ack store.Ack, carried []pendingEntry) ([]store.Signal, error) {
	w.mark, w.length, w.doubt = ack.Mark, ack.LogLength, nil
	left := copy(w.pending, w.pending[len(carried)-1:])
	clear(w.pending[left:])
	w.pending = w.pending[:left]
	if !ack.Durability.Reaches(w.require) {
		return ack.Signals, &store.Error{
			Op: "commit", Key: w.key, Kind: store.ErrNotDurable,
			Detail: fmt.Sprintf("the store reached %s, the run requires %s", ack.Durability, w.require),
		}
	}
	if w.acknowledged != nil {
		w.acknowledged(carried, ack.LogLength-uint64(len(carried))+1, ack.Mark.Revision)
	}
	clear(carried)
	w.spare = carried
	return ack.Signals, nil
}

// resolve settles the commit in doubt (S-4, L-20). The error matches
// store.ErrFenced where another owner took over; any other error leaves the doubt.
func (w *writer) resolve(ctx context.Context) (signals []store.Signal, applied bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	out, err := w.store.Resolve(ctx, w.key, w.fence, w.doubt.id)
	if err != nil {
		return nil, false, w.note(err)
	}
	if out.Applied {
		signals, err = w.accept(out.Ack, w.doubt.carried)
		return signals, true, err
	}
	w.mark, w.length, w.doubt = out.Ack.Mark, out.Ack.LogLength, nil
	return out.Ack.Signals, false, nil
}

// settleDoubt finds out what became of an earlier commit, if that is not known.
func (w *writer) settleDoubt(ctx context.Context) error {
	if w.broken != nil {
		return w.broken
	}
	if w.doubt == nil {
		return nil
	}
	_, _, err := w.resolve(ctx)
	if errors.Is(err, store.ErrNotDurable) {
		return nil // it is applied; the commit that follows states its own durability
	}
	return err
}

// note remembers an error after which nothing may be written any more, and gives
// it back. A record that is gone is another owner's doing, like one that was taken
// over (L-21).
func (w *writer) note(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		err = &store.Error{Op: "commit", Key: w.key, Kind: store.ErrFenced, Detail: "there is no such record any more: it was deleted, or the store lost it"}
	}
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrRegressed) {
		w.broken = err
	}
	return err
}
