package ticket

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a scope with the ticket a, of which one attempt was admitted.
type stage struct {
	scope *scope.Scope
	out   bytes.Buffer
	tty   bool
}

func (g *stage) do(t *testing.T, operation string, by ticket.Principal, r ticket.Request) {
	t.Helper()
	if _, err := g.scope.Do(t.Context(), ticket.Command{OperationID: operation, Principal: by, Request: r}); err != nil {
		t.Errorf("%s: %v", operation, err)
	}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	st := memstore.New().Open()
	s, err := scope.Create(t.Context(), st, ticket.Binding{ScopeID: "s", SupervisorSessionID: "boss", BindingRevision: 1}, scope.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	g := &stage{scope: s}
	user, host := ticket.User("ada"), ticket.Runtime("host")
	of := ticket.Of{Ticket: "a"}
	c := ticket.Contract{Title: "T", Objective: "o", Acceptance: []string{"x"}}
	g.do(t, "take", host, ticket.TakeOver{})
	g.do(t, "create", user, ticket.Create{Tickets: []ticket.NewTicket{{ID: "a", Contract: c}}})
	g.do(t, "ready", user, ticket.MarkReady{Of: of})
	g.do(t, "start", user, ticket.Start{Of: of})
	a, _ := s.State().Assignment("a@1")
	admit := ticket.Admit{Assignment: a.ID, Epoch: a.AuthorityEpoch, ChildBirth: "b", Receipt: ticket.RuntimeReceipt{
		DispatchKey: a.DispatchKey, SpecHash: a.SpecHash, RunID: "run", SessionID: "child",
	}}
	g.do(t, admit.Operation(), host, admit)
	return g
}

func (g *stage) lose(t *testing.T) {
	t.Helper()
	g.do(t, "lose", ticket.Runtime("host"), ticket.LoseLease{Assignment: "a@1"})
}

// prove publishes the stop and the result of the attempt.
func (g *stage) prove(t *testing.T) {
	t.Helper()
	a, _ := g.scope.State().Assignment("a@1")
	pid := uint64(7)
	stop := ticket.Stop{Assignment: a.ID, Stop: ticket.StopReceipt{Receipt: *a.Runtime, ChildBirth: a.ChildBirth, Completed: true, PID: &pid}}
	g.do(t, stop.Operation(), ticket.Runtime("host"), stop)
	submit := ticket.Submit{Assignment: a.ID, Receipt: *a.Runtime, Artifacts: []ticket.Artifact{ticket.NameArtifact([]byte("x"))}}
	g.do(t, submit.Operation(), ticket.Runtime("host"), submit)
}

// watch watches, and gives the exit code and how long it took.
func (g *stage) watch(t *testing.T, ctx context.Context, timeout time.Duration) (exit.Code, time.Duration, error) {
	t.Helper()
	app := &cli.App{
		Out: &g.out, Err: &bytes.Buffer{}, OutTTY: g.tty, Getenv: func(string) string { return "" }, Now: time.Now, Signals: make(chan os.Signal),
	}
	w := &watching{options: &options{env: &verb.Env{App: app}, output: cli.NewFormat(cli.Text)}, timeout: timeout}
	began := time.Now()
	err := w.watch(ctx, g.scope, nil)
	var reported *verb.Reported
	if errors.As(err, &reported) {
		return reported.Code, time.Since(began), nil
	}
	return exit.OK, time.Since(began), err
}

func TestAWatchWaitsForTheProofOfAStopButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		g.lose(t)
		if code, took, err := g.watch(t, t.Context(), 0); code != exit.NeedsPerson || took != patience || err != nil {
			t.Errorf("nobody brings it: got code %d after %s, %v; want %d after %s", code, took, err, exit.NeedsPerson, patience)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		g.lose(t)
		time.AfterFunc(patience-time.Second, func() { g.prove(t) })
		if code, took, err := g.watch(t, t.Context(), 0); code != exit.Submitted || took >= patience || err != nil {
			t.Errorf("a worker brings it: got code %d after %s, %v; want %d sooner than %s", code, took, err, exit.Submitted, patience)
		}
	})
}

func TestAWatchEndsInTimeWhateverIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		if code, took, err := g.watch(t, t.Context(), time.Hour); code != exit.UnderWay || took != time.Hour || err != nil {
			t.Errorf("got code %d after %s, %v; want %d after an hour", code, took, err, exit.UnderWay)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(exit.ErrInterrupted) })
		if _, took, err := g.watch(t, ctx, time.Hour); !errors.Is(err, exit.ErrInterrupted) || took != time.Minute {
			t.Errorf("interrupted: got %v after %s", err, took)
		}
	})
}

func TestAScreenShowsTimeWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newStage(t)
		g.tty = true
		time.AfterFunc(90*time.Second+time.Millisecond, func() { g.prove(t) })
		if code, _, err := g.watch(t, t.Context(), 0); code != exit.Submitted || err != nil {
			t.Errorf("got code %d, %v; want %d", code, err, exit.Submitted)
		}
		for _, want := range []string{"  1s", "  1m29s", "submitted: 1 ticket, 1 submitted"} {
			if !strings.Contains(g.out.String(), want) {
				t.Errorf("the screen never showed %q", want)
			}
		}
	})
}

func TestAnIDIsMadeFromATitle(t *testing.T) {
	for title, want := range map[string]string{
		"Survey: the Parsers!": "survey-the-parsers", "調査": "", "  ": "", "../../etc/passwd": "etc-passwd", "Ünicode 7": "nicode-7",
		strings.Repeat("long ", 20): "long-long-long-long-long-long-long-long", strings.Repeat("x", 100): strings.Repeat("x", maxSlug), "\x1b[2J": "2j",
	} {
		if got := slug(title); got != want {
			t.Errorf("%.30q: got %q, want %q", title, got, want)
		}
	}
}
