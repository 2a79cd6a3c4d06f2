package conformance

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

func failoverLoopCases() []Case {
	return []Case{
		inFailover("L-19/failover-completes-once", "A run whose commits outlive a failover goes on after one and completes once.", runOverFailover),
		inLoss("L-19/lossy-failover-completes-nothing", "A run whose iteration a failover lost does not complete, whatever its model goes on to answer.", runOverLoss),
	}
}

// loop is a host on the patient handle of n, beside another one.
func (n nodes) loop(ctx context.Context) (*loopRig, error) {
	other, err := n.e.openPatient(ctx)
	if err != nil {
		return nil, err
	}
	r := &loopRig{faulty: NewFaulty(n.s), other: other, id: n.e.loopSession("failover")}
	r.host, err = host.New(host.Config{Store: r.faulty.Store(), Owner: "conformance", SignalPoll: never})
	return r, err
}

func runOverFailover(ctx context.Context, _ *Env, n nodes) error {
	rig, err := n.loop(ctx)
	if err != nil {
		return err
	}
	var failed error
	m := &model{answer: func(ctx context.Context, call int) (pluginapi.Message, error) {
		if call == 2 {
			failed = n.failOver(ctx)
		}
		return direct(ctx, call)
	}}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	spec := rig.spec(m, 3, 3)
	spec.Durability = n.copied(store.Commit{}).Require
	if _, err := s.Run(ctx, spec); err != nil || failed != nil {
		return errors.Join(failed, wantOK("the run", err))
	}
	head, err := rig.stored(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		wantLoop("the session", head, loop.Completed, loop.RuntimeCompleted, counts{3, 3, 3}),
		wantEqual("Complete events", rig.count(host.EventComplete), 1),
		wantEqual("provider calls", m.count(), 3),
		rig.wantOnceEach(ctx),
	)
}

func runOverLoss(ctx context.Context, _ *Env, n nodes) error {
	rig, err := n.loop(ctx)
	if err != nil {
		return err
	}
	var failed error
	m := &model{answer: func(ctx context.Context, call int) (pluginapi.Message, error) {
		switch call {
		case 1:
			failed = n.isolate(ctx) // what comes of this call is on one node alone
		case 2:
			failed = errors.Join(failed, n.failOver(ctx))
		}
		return direct(ctx, call)
	}}
	s, done, err := rig.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = s.Run(ctx, rig.spec(m, 3, 3))
	head, headErr := rig.stored(ctx)
	return errors.Join(
		failed, wantKind("the run", err, store.ErrRegressed),
		wantEqual("Complete events", rig.count(host.EventComplete), 0),
		headErr, wantEqual("a completed loop in the store", head.Loop != nil && head.Loop.Status == loop.Completed, false),
	)
}
