package exit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

func TestOfSeveralTicketsTheWorstCounts(t *testing.T) {
	order := exit.TicketOutcomes()
	for i, worse := range order {
		for _, better := range order[i:] {
			if got := exit.Worst([]exit.Outcome{better, worse, better}); got != worse {
				t.Errorf("%s and %s: got %s", worse, better, got)
			}
		}
	}
	if got := exit.Worst(nil); exit.CodeOf(got) == exit.OK {
		t.Errorf("of no ticket at all: got %s; it must be no success", got)
	}
	codes := map[exit.Code]exit.Outcome{}
	for _, o := range order {
		c := exit.CodeOf(o)
		if other, taken := codes[c]; taken || c == exit.Error {
			t.Errorf("%s and %s share the code %d", o, other, c)
		}
		codes[c] = o
	}
}

func TestEveryRefusalHasItsKind(t *testing.T) {
	hints := exit.Hints{Scope: "s 1", Operation: "op"}
	for _, k := range ticket.Kinds() {
		err := fmt.Errorf("ticket file t.yaml:3: %w", &ticket.Error{Op: "start", Key: "a", Kind: k, Detail: "why"})
		v := exit.Of(host.Result{}, err, hints)
		if v.Code != exit.Error || v.Error.Kind != string(k) || v.Error.Next == "" || !strings.Contains(v.Error.Message, "t.yaml:3") {
			t.Errorf("%s: got %+v, %+v", k, v, v.Error)
		}
		if strings.Contains(v.Error.Next, "hostctl") && !strings.Contains(v.Error.Next, "--scope='s 1'") {
			t.Errorf("%s: the next step %q forgets the scope", k, v.Error.Next)
		}
	}
}

func TestErrorsOfAScopeAreNotOfASession(t *testing.T) {
	key := store.Key{Kind: store.KindScope, ID: "work"}
	cases := []struct {
		name       string
		err        error
		kind, want string
		code       exit.Code
	}{
		{"not there", &store.Error{Op: "load", Key: key, Kind: store.ErrNotFound}, "not_found", "hostctl ticket create", exit.Error},
		{"damaged, and the rules say in what", &store.Error{Op: "read", Key: key, Kind: store.ErrCorrupt, Err: &ticket.Error{Op: "decode", Kind: ticket.AuthorityUnavailable}}, "corrupt", "hostctl store check", exit.StoreError},
		{"a refusal that a conflict caused", &ticket.Error{Op: "commit", Kind: ticket.RevisionConflict, Err: &store.Error{Op: "commit", Key: key, Kind: store.ErrConflict}}, "revision_conflict", "hostctl ticket list", exit.Error},
		{"nobody knows whether it happened", &store.Error{Op: "commit", Key: key, Kind: store.ErrUnknownOutcome}, "unknown_outcome", "again with --operation op", exit.StoreError},
		{"deleted and made anew", &store.Error{Op: "read", Key: key, Kind: store.ErrFenced}, "fenced", "hostctl store check", exit.Fenced},
		{"not durable enough", errors.Join(&store.Error{Op: "commit", Key: key, Kind: store.ErrNotDurable}), "not_durable", "--operation op", exit.StoreError},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := exit.Of(host.Result{}, c.err, exit.Hints{Operation: "op"})
			if v.Code != c.code || v.Error.Kind != c.kind || !strings.Contains(v.Error.Next, c.want) || strings.Contains(v.Error.Message, "session") {
				t.Errorf("got code %d, kind %s, %q; want %d, %s, and %q next", v.Code, v.Error.Kind, v.Error.Message, c.code, c.kind, c.want)
			}
		})
	}
}
