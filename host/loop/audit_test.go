package loop

import "github.com/google/go-cmp/cmp"

// effect checks one effect of a step and notes it.
func (p *player) effect(ev Event, was *Effect, ef Effect) {
	p.t.Helper()
	m := p.m
	acknowledged := func(c Checkpoint) bool {
		return ev.Kind == EvCheckpointDone && was != nil && was.Checkpoint == c
	}
	if _, answering := answers[ef.Kind]; answering {
		if p.pending != nil {
			p.t.Errorf("%s: %s is started while %s is under way", ev.Kind, ef.Kind, p.pending.Kind)
		}
		p.pending = &ef
	}
	switch ef.Kind {
	case EffectCheckpoint:
		p.checkpoint(ef)
	case EffectSettle:
		p.settles++
	case EffectCallProvider:
		p.calls++
		if !acknowledged(CheckpointAdmission) {
			p.t.Errorf("%s: the provider is called without an admission acknowledged right before (L-6)", ev.Kind)
		}
	case EffectGuardTools:
		p.roundTools = true
	case EffectRunTools:
		p.toolRuns++
		if !acknowledged(CheckpointTools) {
			p.t.Errorf("%s: tools run without their checkpoint acknowledged right before (L-9)", ev.Kind)
		}
	case EffectInterrupt, EffectHurry:
		if p.pending == nil && !m.Fenced() {
			p.t.Errorf("%s: %s while nothing is under way", ev.Kind, ef.Kind)
		}
		p.cutShort = true
	case EffectPublish:
		p.publication(ev, was, ef.Publish)
	}
}

func (p *player) checkpoint(ef Effect) {
	p.t.Helper()
	switch ef.Checkpoint {
	case CheckpointAdmission:
		p.roundCommits, p.roundTools = 1, false
	case CheckpointTools, CheckpointRoundEnd:
		p.roundCommits++
	case CheckpointBoundary:
		p.boundaries++
		if p.m.Runtime().Status != RuntimeFinalizing {
			p.t.Errorf("boundary checkpoint with runtime %s; want finalizing", p.m.Runtime().Status)
		}
	case CheckpointMirror:
		p.mirrors++
		if p.boundaries != 1 || p.storedRuntime.Status != RuntimeFinalizing {
			p.t.Errorf("the mirror follows %d boundaries, the last stored runtime is %s (L-14)", p.boundaries, p.storedRuntime.Status)
		}
	case CheckpointEnding:
		p.endings++
	}
	most := 1
	if p.roundTools {
		most++
	}
	if p.m.subscribed() {
		most++
	}
	if p.roundCommits > most {
		p.t.Errorf("checkpoint %s is commit %d of its round; at most %d (L-25)", ef.Checkpoint, p.roundCommits, most)
	}
	if p.boundaries > 1 || p.mirrors > 1 || p.endings > 2 || p.settles > 0 {
		p.t.Errorf("checkpoint %s: %d boundaries, %d mirrors, %d endings, %d settlings", ef.Checkpoint, p.boundaries, p.mirrors, p.endings, p.settles)
	}
}

func (p *player) publication(ev Event, was *Effect, pub Publication) {
	p.t.Helper()
	m := p.m
	want := map[Publication]struct {
		statuses []Status
		runtime  RuntimeStatus
	}{
		PublishComplete:  {[]Status{Completed, Stopped, BudgetExhausted}, RuntimeCompleted},
		PublishCancelled: {[]Status{Cancelled}, RuntimeCancelled},
		PublishFailed:    {[]Status{Failed}, RuntimeFailed},
	}
	w, terminal := want[pub]
	if !terminal {
		return
	}
	p.terminals++
	matches := false
	for _, s := range w.statuses {
		matches = matches || s == m.State().Status
	}
	if !matches || m.Runtime().Status != w.runtime {
		p.t.Errorf("%s is published over %s/%s", pub, m.State().Status, m.Runtime().Status)
	}
	if !m.Durable() || m.Fenced() || p.terminals != 1 {
		p.t.Errorf("%s is published with durable %t, fenced %t, as terminal event %d (L-15)", pub, m.Durable(), m.Fenced(), p.terminals)
	}
	if pub != PublishComplete {
		return
	}
	p.completes++
	if ev.Kind != EvCheckpointDone || was == nil || was.Checkpoint != CheckpointMirror {
		p.t.Errorf("complete is published on %s, not on the mirror's acknowledgement (L-15)", ev.Kind)
	}
	if m.CancelRaised() || m.CheckpointFailed() {
		p.t.Errorf("complete is published with cancel raised %t, checkpoint failed %t (L-15)", m.CancelRaised(), m.CheckpointFailed())
	}
}

// invariants are what must hold between any two steps.
func (p *player) invariants(ev Event, before State, effects []Effect) {
	p.t.Helper()
	m, after := p.m, p.m.State()

	fixed := after
	fixed.Revision, fixed.Status, fixed.ReasonCode, fixed.Reason = before.Revision, before.Status, before.ReasonCode, before.Reason
	fixed.IterationsStarted, fixed.IterationsCompleted, fixed.RoundsStarted = before.IterationsStarted, before.IterationsCompleted, before.RoundsStarted
	if fixed != before {
		p.t.Errorf("%s changed what is fixed for life: %s", ev.Kind, cmp.Diff(before, fixed))
	}
	for name, c := range map[string][2]uint32{
		"iterations_started":   {before.IterationsStarted, after.IterationsStarted},
		"iterations_completed": {before.IterationsCompleted, after.IterationsCompleted},
		"rounds_started":       {before.RoundsStarted, after.RoundsStarted},
	} {
		if c[1] < c[0] || c[1] > c[0]+1 {
			p.t.Errorf("%s: %s went from %d to %d", ev.Kind, name, c[0], c[1])
		}
	}
	commits := uint64(0)
	for _, ef := range effects {
		if ef.Kind == EffectCheckpoint || ef.Kind == EffectSettle {
			commits++
		}
	}
	if after.Revision != before.Revision+commits {
		p.t.Errorf("%s: the loop's revision went from %d to %d over %d commits", ev.Kind, before.Revision, after.Revision, commits)
	}
	if before.Status.Terminal() && !after.Status.Terminal() {
		p.t.Errorf("%s: status went from %s back to %s", ev.Kind, before.Status, after.Status)
	}
	if after != before {
		data, err := after.Encode()
		if err != nil {
			p.t.Fatalf("%s: the state can't be stored: %v", ev.Kind, err)
		}
		back, err := Decode(data)
		if err != nil || back == nil || *back != after {
			p.t.Errorf("%s: the stored state reads back as %+v (%v); want %+v", ev.Kind, back, err, after)
		}
	}

	same := p.acks > 0 && p.stored == after && p.storedRuntime == m.Runtime()
	if m.Durable() != same && !m.Fenced() {
		p.t.Errorf("%s: durable is %t, and memory equal to the store %t (memory %+v %+v, store %+v %+v)", ev.Kind, m.Durable(), same, after, m.Runtime(), p.stored, p.storedRuntime)
	}
	if m.Durable() && m.Fenced() {
		p.t.Errorf("%s: fenced, and still durable", ev.Kind)
	}
	p.ending(ev)
}

// ending checks how a run ended.
func (p *player) ending(ev Event) {
	p.t.Helper()
	m := p.m
	if m.Phase() != Done {
		return
	}
	s, rt := m.State().Status, m.Runtime().Status
	switch {
	case m.Fenced():
		if p.terminals != 0 {
			p.t.Errorf("%s: fenced, and %d terminal events", ev.Kind, p.terminals)
		}
	case m.CheckpointFailed():
		if (s != Failed || rt != RuntimeFailed) && (s != Cancelled || rt != RuntimeCancelled) {
			p.t.Errorf("%s: a checkpoint failed, and memory is %s/%s (L-19)", ev.Kind, s, rt)
		}
	case m.CancelRaised():
		if s != Cancelled || rt != RuntimeCancelled {
			p.t.Errorf("%s: cancelled, and memory is %s/%s (L-17)", ev.Kind, s, rt)
		}
	default:
		if p.terminals != 1 {
			p.t.Errorf("%s: %d terminal events; want 1", ev.Kind, p.terminals)
		}
	}
	if !s.Terminal() && !m.Fenced() {
		p.t.Errorf("%s: done with status %s", ev.Kind, s)
	}
}
