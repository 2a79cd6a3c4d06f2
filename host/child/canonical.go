package child

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// tailEntries is how many log entries are read at a time in search of the last message.
const tailEntries = 32

// canonical is what storage holds of an assignment's child, and no handle's memory.
// The zero value: there is none. It reads the scope first, so that what is judged is
// at least as new as what it is judged against.
func (r *Runner) canonical(ctx context.Context, assignment string) (ticket.Child, error) {
	state, err := r.scope.Refresh(ctx)
	if err != nil {
		return ticket.Child{}, err
	}
	a, ok := state.Assignment(assignment)
	if !ok {
		return ticket.Child{}, refuse("read", assignment, ticket.ScopeDenied, nil, "there is no such assignment in this scope")
	}
	return Read(ctx, r.host, ticket.ChildSessionID(a.DispatchKey))
}

// Read is what storage holds of a child session; the zero value where there is no
// such session, or where it is no child.
func Read(ctx context.Context, h *host.Host, session string) (ticket.Child, error) {
	view, err := h.Show(ctx, session)
	if errors.Is(err, store.ErrNotFound) || err == nil && view.Head.Child == nil {
		return ticket.Child{}, nil
	}
	if err != nil {
		return ticket.Child{}, err
	}
	d := view.Head.Child
	c := ticket.Child{
		SessionID: session, Birth: view.Record.Mark.Birth.String(), Parent: d.Parent, Root: d.Root,
		Status: d.Status, Metadata: d.Metadata,
	}
	c.Last, err = lastMessage(ctx, h, session, view.Record.LogLength)
	return c, err
}

// lastMessage reads the log from its end.
func lastMessage(ctx context.Context, h *host.Host, session string, length uint64) (*ticket.LastMessage, error) {
	for end := length; end > 0; {
		from := uint64(1)
		if end > tailEntries {
			from = end - tailEntries + 1
		}
		page, err := h.Log(ctx, session, from, int(end-from+1))
		if err != nil {
			return nil, err
		}
		for i := len(page.Items) - 1; i >= 0; i-- {
			if m := page.Items[i].Entry.Message; m != nil && page.Items[i].Seq <= end {
				return &ticket.LastMessage{Role: string(m.Role), Text: m.Text, ToolCalls: len(m.ToolCalls) > 0}, nil
			}
		}
		end = from - 1
	}
	return nil, nil
}
