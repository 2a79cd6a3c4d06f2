package conformance

import (
	"context"
	"errors"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
)

func loopDurabilityCases() []Case {
	return []Case{
		inLoop("S-5/run-requires-too-much", "A run that requires more durability than the store reaches is refused at its start: no provider call, no success.", requiresTooMuch),
		inLoop("S-5/run-acked-too-little", "A checkpoint that is acknowledged with less durability than the run requires is a checkpoint failure, the final mirror's too.", ackedTooLittle),
	}
}

func requiresTooMuch(ctx context.Context, e *Env) error {
	rig, s, done, err := e.opened(ctx, "much", never)
	if err != nil {
		return err
	}
	defer done()
	m := &model{answer: direct}
	spec := rig.spec(m, 1, 1)
	spec.Durability = store.Durability{Level: e.Store.Durability.Level, Replicas: e.Store.Durability.Replicas + 1}
	_, err = s.Run(ctx, spec)
	bad := []error{
		wantText("the run", err, "session checkpoint failed; execution not admitted"),
		wantEqual("provider calls", m.count(), 0),
		wantEqual("Complete events", rig.count(host.EventComplete), 0),
		wantLoop("memory", s.Snapshot().Head, loop.Failed, loop.RuntimeFailed, counts{}),
	}
	if !errors.Is(err, store.ErrNotDurable) {
		bad = append(bad, failf("the run: want %w, got %w", store.ErrNotDurable, orNone(err)))
	}
	return errors.Join(bad...)
}

// forgetful acknowledges chosen commits with no durability at all.
type forgetful struct {
	store.Store
	chosen func(Call) bool
}

// Commit implements store.Store.
func (f forgetful) Commit(ctx context.Context, key store.Key, fence store.Fence, c store.Commit) (store.Ack, error) {
	ack, err := f.Store.Commit(ctx, key, fence, c)
	if f.chosen(Call{Commit: c}) {
		ack.Durability = store.Durability{}
	}
	return ack, err
}

func ackedTooLittle(ctx context.Context, e *Env) error {
	for _, row := range checkpointRows() {
		if row.cancels || row.tool || row.hook != nil || row.whole.status == loop.Failed {
			continue
		}
		rig, err := e.loop(ctx, row.name, never)
		if err != nil {
			return err
		}
		st := forgetful{rig.faulty.Store(), onCommit(row.at)}
		if rig.host, err = host.New(host.Config{Store: st, Owner: "conformance", SignalPoll: never}); err != nil {
			return err
		}
		s, done, err := rig.open(ctx)
		if err != nil {
			return err
		}
		m := &model{answer: row.answer}
		spec := rig.spec(m, row.k, row.r)
		spec.Durability = store.Durability{Level: e.Store.Durability.Level}
		_, err = s.Run(ctx, spec)
		memory := s.Snapshot().Head
		bad := []error{
			wantText("the run", err, "session checkpoint failed; execution not admitted"),
			wantEqual("it is an ErrNotDurable", errors.Is(err, store.ErrNotDurable), true),
			wantEqual("provider calls", m.count(), row.failed.calls),
			wantEqual("Complete events", rig.count(host.EventComplete), 0),
			wantLoop("memory", memory, row.failed.status, row.failed.runtime, row.failed.counts),
			rig.wantStored(ctx, "the store", memory),
			rig.wantOnceEach(ctx),
		}
		done()
		if err := errors.Join(bad...); err != nil {
			return failf("%s: %w", row.words, err)
		}
	}
	return nil
}
