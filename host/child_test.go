package host_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/ticket"
)

func newChild() *host.Child {
	return &host.Child{Parent: "boss", Root: "top", Status: ticket.ChildRunning, Metadata: map[string]string{ticket.MetaDispatch: "{}"}}
}

func (r *rig) openChild(id string, c *host.Child) *host.Session {
	r.t.Helper()
	s, err := r.host.Open(context.Background(), host.OpenRequest{ID: id, Child: c})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestAChildIsDescribedInItsHead(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	want := newChild()
	s := r.openChild("c", want)
	if d := cmp.Diff(want, r.stored("c").Child); d != "" {
		t.Errorf("when it was created (- want, + got):\n%s", d)
	}
	s.Snapshot().Head.Child.Metadata[ticket.MetaTaskState] = "not the session's own"
	before := s.Snapshot().Mark.Revision
	if err := s.UpdateChild(ctx, func(c *host.Child) error {
		c.Metadata[ticket.MetaTaskState] = ticket.TaskRunning
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.Snapshot().Mark.Revision; got != before+1 {
		t.Errorf("an update took %d commits, want 1", got-before)
	}
	// Only the run that was prepared may run, and only until it stopped (T-7).
	spec := r.spec(&script{answers: []any{say("done")}}, 1, 1)
	refused := func(what string) {
		t.Helper()
		if _, err := s.Run(ctx, spec); !errors.Is(err, host.ErrChild) {
			t.Errorf("a run of a child %s: got %v, want %v", what, err, host.ErrChild)
		}
	}
	refused("without a dispatch")
	d := ticket.ChildDispatch{
		Binding: ticket.Binding{ScopeID: "s", SupervisorSessionID: "boss", BindingRevision: 1}, Ticket: "a", Assignment: "a@1",
		Generation: 1, ContractRevision: 1, DispatchKey: "s/a@1/1", SpecHash: strings.Repeat("0", 64), RootSessionID: "top",
	}
	prepare := func(d ticket.ChildDispatch) {
		t.Helper()
		text, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		want.Metadata[ticket.MetaDispatch] = text
		if err := s.UpdateChild(ctx, func(c *host.Child) error { c.Metadata[ticket.MetaDispatch] = text; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	prepare(d)
	refused("that was not prepared")
	other, err := d.Prepared("another-run", s.ID(), s.Birth().String())
	if err != nil {
		t.Fatal(err)
	}
	prepare(other)
	refused("that was prepared for another run")
	mine, err := d.Prepared(s.ExecutionID(), s.ID(), s.Birth().String())
	if err != nil {
		t.Fatal(err)
	}
	prepare(mine)
	if err := s.UpdateChild(ctx, func(c *host.Child) error { c.Metadata[ticket.MetaOwnedStop] = "{}"; return nil }); err != nil {
		t.Fatal(err)
	}
	refused("that stopped")
	if err := s.UpdateChild(ctx, func(c *host.Child) error { delete(c.Metadata, ticket.MetaOwnedStop); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, spec); err != nil {
		t.Fatal(err)
	}
	want.Metadata[ticket.MetaTaskState] = ticket.TaskRunning
	if d := cmp.Diff(want, r.stored("c").Child); d != "" {
		t.Errorf("after a run (- want, + got):\n%s", d)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.UpdateChild(ctx, func(*host.Child) error { return nil }); !errors.Is(err, host.ErrClosed) {
		t.Errorf("once it is closed: got %v, want %v", err, host.ErrClosed)
	}
	stranger := newChild()
	stranger.Parent = "somebody else"
	s = r.openChild("c", stranger)
	defer s.Close(ctx)
	if d := cmp.Diff(want, s.Snapshot().Head.Child); d != "" {
		t.Errorf("opened with another description, it must keep its own (- want, + got):\n%s", d)
	}
}

func TestAnUpdateThatIsRefusedChangesNothing(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	s := r.openChild("c", newChild())
	defer s.Close(ctx)
	before := r.raw("c")
	mine := errors.New("no")
	if err := s.UpdateChild(ctx, func(c *host.Child) error { c.Status = ticket.ChildFailed; return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v, want the caller's own error", err)
	}
	for name, change := range map[string]func(*host.Child){
		"parent":                  func(c *host.Child) { c.Parent = "" },
		"root":                    func(c *host.Child) { c.Root = strings.Repeat("x", 257) },
		"status":                  func(c *host.Child) { c.Status = "idle" },
		"metadata key":            func(c *host.Child) { c.Metadata["a plugin's"] = "x" },
		"ticket.dispatch.v1: sco": func(c *host.Child) { c.Metadata[ticket.MetaDispatch] = strings.Repeat("x", 4097) },
		"actor":                   func(c *host.Child) { c.Actor = &ticket.Activation{ID: "a"} },
		"worker":                  func(c *host.Child) { c.Worker = &ticket.ProcessIdentity{} },
	} {
		err := s.UpdateChild(ctx, func(c *host.Child) error { change(c); return nil })
		if !errors.Is(err, loop.ErrState) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want one that names the %s", err, name)
		}
	}
	if r.raw("c") != before || !cmp.Equal(s.Snapshot().Head.Child, newChild()) {
		t.Error("a refused update left something behind")
	}
	plain := r.open("plain")
	if err := plain.UpdateChild(ctx, func(*host.Child) error { return nil }); !errors.Is(err, host.ErrNotAChild) {
		t.Errorf("of a session that is no child: got %v, want %v", err, host.ErrNotAChild)
	}
}

// M-4: a document that is too long for a proof denies the scope, wherever it is met.
func TestADocumentThatIsTooLongIsDenied(t *testing.T) {
	c := newChild()
	c.Metadata[ticket.MetaOwnedStop] = strings.Repeat("x", ticket.MaxChildValueBytes)
	if err := c.Validate(); err != nil {
		t.Errorf("of the most bytes that are allowed: got %v, want none", err)
	}
	c.Metadata[ticket.MetaOwnedStop] += "x"
	err := c.Validate()
	if !errors.Is(err, ticket.ScopeDenied) || !errors.Is(err, loop.ErrState) || !strings.Contains(err.Error(), ticket.MetaOwnedStop+": scope_denied: it has 4097 bytes") {
		t.Errorf("one byte more: got %v, want %v that names the document", err, ticket.ScopeDenied)
	}
}

func TestACopyOfAChildIsNoChild(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	if err := r.openChild("c", newChild()).Close(ctx); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.host.Export(ctx, "c", &out); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Import(ctx, &out, "imported"); err != nil {
		t.Fatal(err)
	}
	if err := r.host.Fork(ctx, "c", "forked"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"imported", "forked"} {
		if c := r.stored(id).Child; c != nil {
			t.Errorf("%s: got %+v, want no child", id, c)
		}
	}
}
