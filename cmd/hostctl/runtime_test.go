//go:build unix

package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// runtimeHost is the host in whose name the scripts report.
const runtimeHost = "host-of-the-test"

// cmdRuntime reports what a worker would, without running anything: the scripts are
// about what an operator sees of it, and each step has to come when they say.
func cmdRuntime(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: runtime admit|complete|fail|submit|lose ASSIGNMENT [TEXT]")
	}
	ctx := context.Background()
	st, err := backend.Open(ctx, ts.Getenv("LOOPHOST_STORE"), backend.Env{StateDir: filepath.Join(ts.Getenv("HOME"), ".local", "state", "loophost")})
	ts.Check(err)
	id := ts.Getenv(verb.ScopeVariable)
	if id == "" {
		id = verb.DefaultScope
	}
	b, err := verb.BindingOf(ctx, st, id)
	ts.Check(err)
	s, err := scope.Open(ctx, st, b, scope.Config{})
	ts.Check(err)
	r := &reporter{scope: s, artifacts: scope.NewArtifacts(st, scope.Config{})}
	err = r.report(ctx, args[0], args[1], args[2:])
	s.Close()
	ts.Check(errors.Join(err, st.Close()))
}

type reporter struct {
	scope     *scope.Scope
	artifacts *scope.Artifacts
}

func (r *reporter) do(ctx context.Context, operation string, request ticket.Request) error {
	_, err := r.scope.Do(ctx, ticket.Command{OperationID: operation, Principal: ticket.Runtime(runtimeHost), Request: request})
	return err
}

func (r *reporter) report(ctx context.Context, what, assignment string, text []string) error {
	if r.scope.State().Authority().Coordinator != runtimeHost {
		if err := r.do(ctx, "take-over/"+runtimeHost, ticket.TakeOver{}); err != nil {
			return err
		}
	}
	a, ok := r.scope.State().Assignment(assignment)
	if !ok {
		return errors.New("no assignment " + assignment)
	}
	switch what {
	case "admit":
		admit := ticket.Admit{Assignment: a.ID, Epoch: a.AuthorityEpoch, ChildBirth: "birth", Receipt: ticket.RuntimeReceipt{
			DispatchKey: a.DispatchKey, SpecHash: a.SpecHash, RunID: "run-of-" + a.ID, SessionID: ticket.ChildSessionID(a.DispatchKey),
		}}
		return r.do(ctx, admit.Operation(), admit)
	case "complete", "fail":
		pid := uint64(4242)
		stop := ticket.Stop{Assignment: a.ID, Stop: ticket.StopReceipt{Receipt: *a.Runtime, ChildBirth: a.ChildBirth, Completed: what == "complete", PID: &pid}}
		return r.do(ctx, stop.Operation(), stop)
	case "submit":
		artifact, err := r.artifacts.Put(ctx, []byte(text[0]))
		if err != nil {
			return err
		}
		submit := ticket.Submit{Assignment: a.ID, Receipt: *a.Runtime, Artifacts: []ticket.Artifact{artifact}, Evidence: []string{}}
		return r.do(ctx, submit.Operation(), submit)
	case "lose":
		return r.do(ctx, uuid.NewString(), ticket.LoseLease{Assignment: a.ID})
	}
	return errors.New("unknown report " + what)
}
