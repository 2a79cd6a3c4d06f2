package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

// outOfReach is more than any store that this suite will see can give.
var outOfReach = store.Durability{Level: store.LevelPower, Replicas: 1000}

func durabilityCases() []Case {
	return []Case{
		core("S-5/description", "The store says its name, the durability it reaches and how that was found out.", describes),
		core("S-5/acks-reach-the-requirement", "Every requirement up to what the store promises is reached by the ack.", acksReach),
		core("S-5/out-of-reach", "A requirement that the store can't reach is never acknowledged; the record is whole either way.", neverAckedOutOfReach),
		core("S-5/other-handles-see-acks", "What was acknowledged is there after the handle that wrote it is closed.", acksOutliveHandles),
		{
			ID: "S-5/acks-survive-a-crash", Profile: ProfileCrash, Needs: []Need{NeedCrash, NeedProcess}, Run: acksSurviveCrash,
			Sentence: "What was acknowledged is there after the processes were killed.",
		},
	}
}

func describes(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	d, err := s.Describe(ctx)
	if err != nil {
		return failf("describe: want success, got %w", err)
	}
	bad := []error{
		wantEqual("name is set", d.Name != "", true),
		wantEqual("how the durability was found out is set", d.Probe != "", true),
		wantEqual("durability is at least memory", d.Durability.Level >= store.LevelMemory, true),
		wantEqual("replicas are not negative", d.Durability.Replicas >= 0, true),
		wantEqual("durability is the same in every handle", d.Durability, e.Store.Durability),
	}
	_, watches := s.(store.SignalWatcher)
	_, checks := s.(store.Checker)
	return errors.Join(append(bad,
		wantEqual(`capability "watch" is listed if the store can watch`, d.Has("watch"), watches),
		wantEqual(`capability "check" is listed if the store can check`, d.Has("check"), checks))...)
}

func acksReach(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	best := e.Store.Durability
	var wants []store.Durability
	for l := store.LevelNone; l <= best.Level; l++ {
		for r := 0; r <= best.Replicas; r++ {
			wants = append(wants, store.Durability{Level: l, Replicas: r})
		}
	}
	a, err := e.owner(ctx, s, e.Key("durable"))
	if err != nil {
		return err
	}
	var bad []error
	for i, want := range wants {
		c := a.commit()
		c.Require = want
		ack, err := a.send(ctx, c)
		at := "a commit that requires " + want.String()
		made, makeErr := s.Create(ctx, e.Key(fmt.Sprint("durable ", i)), store.Commit{ID: e.UUID(), Head: []byte("h"), Require: want})
		bad = append(bad,
			wantOK(at, err), wantEqual(at+": reached, ack says "+ack.Durability.String(), ack.Durability.Reaches(want), true),
			wantEqual(at+": something is stated", ack.Durability.Level > store.LevelNone, true),
			wantOK("a create that requires "+want.String(), makeErr), wantEqual("create: reached", made.Durability.Reaches(want), true),
		)
	}
	return errors.Join(bad...)
}

func neverAckedOutOfReach(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("too much"))
	if err != nil {
		return err
	}
	wants := []store.Durability{outOfReach, {Level: store.LevelMemory, Replicas: 1000}}
	if best := e.Store.Durability; best.Level < store.LevelPower {
		wants = append(wants, store.Durability{Level: best.Level + 1})
	}
	for _, want := range wants {
		at := "a commit that requires " + want.String()
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		c := a.commit()
		c.Require = want
		_, err = s.Commit(ctx, a.key, a.fence, c)
		if err := wantKind(at, err, store.ErrNotDurable); err != nil {
			return err
		}
		after, err := a.look(ctx)
		if err != nil {
			return err
		}
		// A store that learns of its replicas by writing may have applied it.
		if after.record.LastCommitID == c.ID {
			if err := errors.Join(wantBytes(at+": head", after.record.Head, c.Head), wantEqual(at+": log", len(after.log), len(before.log)+1)); err != nil {
				return err
			}
		} else if err := before.untouched("after "+at, after); err != nil {
			return err
		}
		a.mark = after.record.Mark
		if err := a.advance(ctx, 1); err != nil {
			return failf("after %s: %w", at, err)
		}
	}
	return nil
}

func acksOutliveHandles(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("kept"))
	if err != nil {
		return err
	}
	if err := a.advance(ctx, 3); err != nil {
		return err
	}
	before, err := a.look(ctx)
	if err != nil {
		return err
	}
	if err := wantOK("close", s.Close()); err != nil {
		return err
	}
	if a.s, err = e.Open(ctx); err != nil {
		return err
	}
	return errors.Join(
		expectUntouched(ctx, a.s, "the writing handle was closed", a.key, before),
		// its fence is still the record's: nobody else acquired
		a.advance(ctx, 1),
	)
}

func acksSurviveCrash(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("crashed"))
	if err != nil {
		return err
	}
	for range 3 {
		if err := a.advance(ctx, 2); err != nil {
			return err
		}
		before, err := a.look(ctx)
		if err != nil {
			return err
		}
		if err := e.Harness.(Crasher).Crash(ctx); err != nil {
			return failf("the harness crashes the store: %w", err)
		}
		if a.s, err = e.Open(ctx); err != nil {
			return err
		}
		after, err := a.look(ctx)
		if err != nil {
			return err
		}
		if err := before.same("after the crash", after); err != nil {
			return err
		}
		if err := a.acquire(ctx, e.force()); err != nil {
			return err
		}
	}
	return nil
}
