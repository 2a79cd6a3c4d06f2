package host

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// Child describes a session that does an assignment of a ticket (tickets.md): whose
// child it is, how its run stands, who its actor is, and the documents that only the
// host writes. No plugin sees or changes it. A fork and an import have none: they
// are other sessions, and nothing was dispatched to them.
type Child struct {
	Parent string             `json:"parent"` // the session that supervises it, 1–256 bytes
	Root   string             `json:"root"`   // the session at the top of that line, 1–256 bytes
	Status ticket.ChildStatus `json:"status"` // running until the final save (life cycle, row 9)
	// Actor says who may run it, beside the session's own fence; nil: nobody claimed it.
	Actor *ticket.Activation `json:"actor,omitempty"`
	// Worker is the process that claimed the actor last, so that whoever comes after
	// it can prove that it is gone; nil: nobody, or a system that can't tell.
	Worker *ticket.ProcessIdentity `json:"worker,omitempty"`
	// Metadata holds documents under the keys that package ticket names, at most
	// ticket.MaxChildValueBytes each.
	Metadata map[string]string `json:"metadata"`
}

// childKeys are the only keys of a child's metadata.
var childKeys = map[string]bool{
	ticket.MetaDispatch: true, ticket.MetaOwnedStop: true, ticket.MetaTaskState: true,
	ticket.MetaTaskInstance: true, ticket.MetaProcessIdentity: true,
}

// Validate checks ids, status and metadata. The error wraps loop.ErrState, and
// ticket.ScopeDenied where a value of the metadata is too long to be a proof (M-4).
func (c *Child) Validate() error {
	why := ""
	switch {
	case len(c.Parent) == 0 || len(c.Parent) > store.MaxIDBytes:
		why = "parent needs 1 to 256 bytes"
	case len(c.Root) == 0 || len(c.Root) > store.MaxIDBytes:
		why = "root needs 1 to 256 bytes"
	}
	switch c.Status {
	case ticket.ChildRunning, ticket.ChildCompleted, ticket.ChildFailed, ticket.ChildCancelled, ticket.ChildTimedOut:
	default:
		why = fmt.Sprintf("status %q is unknown", c.Status)
	}
	for key, value := range c.Metadata {
		switch {
		case !childKeys[key]:
			why = fmt.Sprintf("metadata key %q is unknown", key)
		case len(value) > ticket.MaxChildValueBytes:
			return fmt.Errorf("%w: session head: child: %w", loop.ErrState, &ticket.Error{
				Op: "document", Key: key, Kind: ticket.ScopeDenied,
				Detail: fmt.Sprintf("it has %d bytes; at most %d are allowed", len(value), ticket.MaxChildValueBytes),
			})
		}
	}
	if c.Worker != nil && why == "" {
		if err := c.Worker.Validate(); err != nil {
			return fmt.Errorf("%w: session head: child: worker: %w", loop.ErrState, err)
		}
	}
	if c.Actor != nil && why == "" {
		if err := c.Actor.Validate(); err != nil {
			return fmt.Errorf("%w: session head: child: actor: %w", loop.ErrState, err)
		}
	}
	if why != "" {
		return fmt.Errorf("%w: session head: child: %s", loop.ErrState, why)
	}
	return nil
}

// clone is nil for nil.
func (c *Child) clone() *Child {
	if c == nil {
		return nil
	}
	d := *c
	d.Metadata = maps.Clone(c.Metadata)
	if c.Worker != nil {
		w := *c.Worker
		d.Worker = &w
	}
	if c.Actor != nil {
		a := *c.Actor
		d.Actor = &a
	}
	return &d
}

// ErrNotAChild answers UpdateChild of a session that was not made for an assignment.
var ErrNotAChild = errors.New("the session is no child of a ticket's assignment")

// ErrChild answers Run in a child session that this execution may not run: what is said
// there would be taken for the result of the run that was admitted (T-7).
var ErrChild = errors.New("the session is the child of a ticket's assignment and is run by its worker; to go on from it, fork it")

// mayRun refuses every run of a child but the one that was prepared, until its stop is
// written.
func (c *Child) mayRun(execution string) error {
	if c == nil {
		return nil
	}
	d, err := ticket.DecodeChildDispatch([]byte(c.Metadata[ticket.MetaDispatch]))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChild, err)
	}
	if d.Receipt == nil || d.Receipt.RunID != execution || c.Metadata[ticket.MetaOwnedStop] != "" {
		return ErrChild
	}
	return nil
}

// UpdateChild lets change alter the session's description as a child and commits
// it: one checkpoint, of which nothing of the loop changes. An error of change is
// given back, and nothing is changed. A checkpoint that fails is a *CheckpointError;
// Checkpoint tries again. It waits for a Run that is under way.
func (s *Session) UpdateChild(ctx context.Context, change func(*Child) error) error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return ErrClosed
	}
	next := s.Snapshot().Head.Child
	if next == nil {
		return ErrNotAChild
	}
	if err := change(next); err != nil {
		return err
	}
	if err := next.Validate(); err != nil {
		return err
	}
	s.setHead(func(h *Head) { h.Child = next })
	return s.checkpoint(ctx, "child")
}
