package ticket

import (
	"context"
	"sync"

	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// maxOperation leaves room for a ticket's id behind the operation's, since a command
// of this program may be several to the scope.
const maxOperation = ticket.MaxIDBytes - ticket.MaxTicketIDBytes - 8

// together is how many commands are sent at once: as many as a scope commits together.
const together = 64

// begin gives the command's operation id: the given one, or a random one.
func (o *options) begin() string {
	o.tried = o.operation
	if o.tried == "" {
		o.tried = o.env.NewID()
	}
	return o.tried
}

// operationOf is the id of one of n commands that an operation is made of. It depends
// on nothing but the operation and the ticket, so that the same call is the same
// commands (T-1).
func operationOf(operation, id string, n int) string {
	if n == 1 {
		return operation
	}
	return operation + "/" + id
}

// wish is one command, or why there can't be one.
type wish struct {
	id      string // of the ticket or assignment
	request ticket.Request
	err     error

	receipt *ticket.Receipt
}

// carry carries out wishes, each by itself, and keeps what came of each.
func (o *options) carry(ctx context.Context, s *scope.Scope, wishes []*wish, operation func(id string) string) {
	by := o.principal(s.Binding())
	var left sync.WaitGroup
	slots := make(chan struct{}, together)
	for _, w := range wishes {
		if w.err != nil {
			continue
		}
		slots <- struct{}{}
		left.Go(func() {
			defer func() { <-slots }()
			r, err := s.Do(ctx, ticket.Command{OperationID: operation(w.id), Principal: by, Request: w.request})
			if w.err = err; err == nil {
				w.receipt = &r
			}
		})
	}
	left.Wait()
}
