package ticket

import (
	"testing"
)

func claim(run, owner string) ActorClaim { return ActorClaim{"scope/a@1/1", run, owner} }

// claimedActor is an actor claimed for run-1 by one until 100.
func claimedActor(t testing.TB) Activation {
	t.Helper()
	a, err := Activation{}.Claim(claim("run-1", "one"), 10, 100)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func runningActor(t testing.TB) Activation {
	t.Helper()
	a := claimedActor(t)
	a, err := a.Run(a.Lease(), 20)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Life cycle, row 3: an identical claim replays, another live one is busy, an expired
// one gets the next attempt and epoch.
func TestAnActorIsClaimedByOne(t *testing.T) {
	first := claimedActor(t)
	if want := (Activation{"scope/a@1/1", 1, "run-1", "one", 1, 100, ActorReserved}); first != want {
		t.Errorf("the first claim: got %+v, want %+v", first, want)
	}
	running := runningActor(t)
	for _, held := range []Activation{first, running} {
		if got, err := held.Claim(claim("run-1", "one"), 99, 300); err != nil || got != held {
			t.Errorf("an identical claim: got %+v, %v; want %+v as it is", got, err, held)
		}
		for _, c := range []ActorClaim{claim("run-2", "one"), claim("run-1", "two"), claim("run-2", "two")} {
			_, err := held.Claim(c, 99, 300)
			denied(t, err, ResourceBlocked, "one")
		}
		for _, c := range []ActorClaim{claim("run-1", "one"), claim("run-2", "two")} {
			got, err := held.Claim(c, 100, 300)
			if want := (Activation{"scope/a@1/1", 2, c.RunID, c.Owner, 2, 300, ActorReserved}); err != nil || got != want {
				t.Errorf("a claim after the lease: got %+v, %v; want %+v", got, err, want)
			}
		}
	}
	_, err := first.Claim(ActorClaim{"other", "run-1", "one"}, 200, 300)
	denied(t, err, ScopeDenied, "scope/a@1/1")
	_, err = first.Claim(claim("", "one"), 200, 300)
	denied(t, err, ScopeDenied, "1 to 256 bytes")
	_, err = first.Claim(claim("run-2", "two"), 200, 200)
	denied(t, err, InvalidTransition, "over when it begins")
}

func TestAnActorRunsUnderItsNewestLease(t *testing.T) {
	a := claimedActor(t)
	old := a.Lease()
	running, err := a.Run(old, 99)
	if err != nil || running.Status != ActorRunning || running.Lease() != old {
		t.Fatalf("got %+v, %v; want it running under the same lease", running, err)
	}
	if again, err := running.Run(old, 99); err != nil || again != running {
		t.Errorf("again: got %+v, %v; want it as it is", again, err)
	}
	_, err = a.Run(old, 100)
	denied(t, err, ResourceBlocked, "claim the actor anew")

	now, err := running.Claim(claim("run-1", "one"), 100, 200)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() (Activation, error){
		"run":             func() (Activation, error) { return now.Run(old, 110) },
		"renew":           func() (Activation, error) { return now.Renew(old, 110, 300) },
		"finish":          func() (Activation, error) { return now.Finish(old, ActorSucceeded) },
		"run of nobody's": func() (Activation, error) { return Activation{}.Run(ActorLease{}, 110) },
	} {
		_, err := try()
		t.Log(name)
		denied(t, err, ScopeDenied, "not the newest")
	}
}

func TestALeaseIsRenewedWhileItIsLive(t *testing.T) {
	a := runningActor(t)
	longer, err := a.Renew(a.Lease(), 99, 200)
	if err != nil || longer.LeaseUntil != 200 || longer.LeaseEpoch != 1 || longer.Status != ActorRunning {
		t.Errorf("got %+v, %v; want it live until 200", longer, err)
	}
	if same, err := longer.Renew(a.Lease(), 150, 160); err != nil || same != longer {
		t.Errorf("a shorter one: got %+v, %v; want it as it is", same, err)
	}
	if !longer.Live(199) || longer.Live(200) {
		t.Error("it is not live exactly until 200")
	}
	_, err = longer.Renew(a.Lease(), 200, 300)
	denied(t, err, ResourceBlocked, "claim the actor anew")
}

// Life cycle, row 11.
func TestAnActorFinishesOnce(t *testing.T) {
	ends := []ActivationStatus{ActorSucceeded, ActorFailed, ActorCancelled}
	for _, end := range ends {
		reserved := claimedActor(t)
		if got, err := reserved.Finish(reserved.Lease(), end); end == ActorSucceeded {
			denied(t, err, InvalidTransition, "running")
		} else if err != nil || got.Status != end {
			t.Errorf("a reserved one: got %+v, %v; want it %s", got, err, end)
		}
		running := runningActor(t)
		over, err := running.Finish(running.Lease(), end)
		if err != nil || over.Status != end || over.Live(20) {
			t.Fatalf("got %+v, %v; want it %s", over, err, end)
		}
		for _, other := range ends {
			got, err := over.Finish(over.Lease(), other)
			if other != end {
				denied(t, err, InvalidTransition, string(end))
			} else if err != nil || got != over {
				t.Errorf("again: got %+v, %v; want it as it is", got, err)
			}
		}
		_, err = over.Run(over.Lease(), 20)
		denied(t, err, InvalidTransition, string(end))
		_, err = over.Renew(over.Lease(), 20, 200)
		denied(t, err, InvalidTransition, string(end))
		_, err = over.Claim(claim("run-2", "two"), 300, 400)
		denied(t, err, InvalidTransition, string(end))
		if got, err := over.Claim(claim("run-1", "one"), 300, 400); err != nil || got != over {
			t.Errorf("the claim that it was: got %+v, %v; want it as it is", got, err)
		}
	}
	a := runningActor(t)
	for _, no := range []ActivationStatus{"", ActorReserved, ActorRunning, "done"} {
		_, err := a.Finish(a.Lease(), no)
		denied(t, err, InvalidTransition, "no end")
	}
}

// T-10: the actor stays running until the result is published; T-9: an attempt without
// result ends it as it ended.
func TestAnActorEndsWithItsAttempt(t *testing.T) {
	p := newPlay(t)
	p.do(host1, TakeOver{})
	outcome := func(assignment string, want ActivationStatus) {
		t.Helper()
		got, err := p.s.ActorOutcome(assignment)
		if want == "" {
			denied(t, err, AuthorityUnavailable, "not published")
		} else if err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	p.start("a", 9)
	outcome("a@1", "")
	d := p.admit("a@1", "run")
	outcome("a@1", "")
	p.do(host1, processStop(d, true))
	outcome("a@1", "")
	p.do(host1, submit(d))
	outcome("a@1", ActorSucceeded)

	p.do(boss, Reject{of("a"), "a@1", "no"}, Start{Of: of("a")})
	d = p.admit("a@2", "run-2")
	p.do(host1, LoseLease{"a@2"})
	outcome("a@2", "")
	p.do(host1, processStop(d, false))
	outcome("a@2", ActorFailed)

	p.do(boss, Start{Of: of("a")})
	d = p.admit("a@3", "run-3")
	p.do(boss, Cancel{of("a")})
	outcome("a@3", "")
	p.do(host1, processStop(d, true))
	outcome("a@3", ActorCancelled)
	p.do(host1, submit(d))
	outcome("a@3", ActorSucceeded)

	_, err := p.s.ActorOutcome("b@1")
	denied(t, err, ScopeDenied, "no such assignment")
}

func TestAnActivationIsValidated(t *testing.T) {
	for _, a := range []Activation{{}, claimedActor(t), runningActor(t)} {
		if err := a.Validate(); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for name, change := range map[string]func(*Activation){
		"activation_id": func(a *Activation) { a.ID = "" },
		"run_id":        func(a *Activation) { a.RunID = "" },
		"lease_owner":   func(a *Activation) { a.LeaseOwner = "" },
		"attempt":       func(a *Activation) { a.Attempt = 0 },
		"lease_epoch":   func(a *Activation) { a.LeaseEpoch = 0 },
		"status":        func(a *Activation) { a.Status = "done" },
	} {
		a := claimedActor(t)
		change(&a)
		denied(t, a.Validate(), ScopeDenied, name)
	}
}
