package run

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEndingThatCouldNotBeWrittenIsTriedOnceMore(t *testing.T) {
	cases := []struct {
		name   string
		broken int // commits that fail after the start's
		taken  bool
		want   exit.Code
		status loop.Status // in the store
	}{
		{"the store is back: the ending is durable", 2, false, exit.Failed, loop.Failed},
		{"the store stays away: the ending is not known", -1, false, exit.StoreError, loop.Running},
		{"another owner took over meanwhile: fenced", 2, true, exit.Fenced, loop.RecoveryUnsupported},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			memory := memstore.New()
			faulty := conformance.NewFaulty(memory.Open(), conformance.Fault{Op: conformance.OpCommit, Nth: 2, Times: c.broken})
			h, err := host.New(host.Config{Store: faulty.Store()})
			if err != nil {
				t.Fatal(err)
			}
			session, err := h.Open(ctx, host.OpenRequest{ID: "s"})
			if err != nil {
				t.Fatal(err)
			}
			res, err := session.Run(ctx, host.RunSpec{Objective: "go", Iterations: 1, Rounds: 1, Provider: plugin.FuncProvider{Name: "never", Fn: never}})
			if v := exit.Of(res, err, exit.Hints{}); v.Code != exit.StoreError {
				t.Fatalf("the run ended with %d (%v), want an ending that is not known", v.Code, err)
			}
			other, oerr := host.New(host.Config{Store: memory.Open()})
			if oerr != nil {
				t.Fatal(oerr)
			}
			if c.taken {
				if _, err := other.TakeOver(ctx, "s", "test"); err != nil {
					t.Fatal(err)
				}
			}
			res, err = (&runner{}).settle(ctx, session, res, err)
			if v := exit.Of(res, err, exit.Hints{}); v.Code != c.want {
				t.Errorf("got code %d (%v), want %d", v.Code, err, c.want)
			}
			view, serr := other.Show(ctx, "s")
			if serr != nil || view.Head.Loop.Status != c.status {
				t.Errorf("the store holds %+v, %v; want %s", view.Head.Loop, serr, c.status)
			}
			if c.want == exit.Failed && res.Revision != view.Record.Mark.Revision {
				t.Errorf("got revision %d, the store has %d", res.Revision, view.Record.Mark.Revision)
			}
			faulty.Heal()
			if err := session.Close(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// never is a provider that must not be called: its admission is not durable.
func never(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	return nil, &pluginapi.Failure{Kind: pluginapi.FailInternal, Message: "called without a durable admission"}
}
