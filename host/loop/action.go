package loop

// The actions of the transitions: they change the machine's memory and say what
// to do. Counters change before the checkpoint that records them, so that an
// attempted admission counts, whatever becomes of it (L-19).

// workRemainsAfterAnswer reports whether something is left to admit once the
// answer at hand is counted: it completes the open iteration, or answers the
// pending deny.
func (m *Machine) workRemainsAfterAnswer() bool {
	completed := m.state.IterationsCompleted
	if completed < m.state.IterationsStarted {
		completed++
	}
	return completed < m.state.MaxIterations
}

func begin(m *Machine, _ Event) []Effect { return m.checkpoint(CheckpointStart) }

// checkpoint asks for a commit of the state as it is now, under a new loop revision.
func (m *Machine) checkpoint(c Checkpoint) []Effect {
	m.state.Revision++
	m.durable = false
	return []Effect{{Kind: EffectCheckpoint, Checkpoint: c}}
}

func commit(c Checkpoint) func(*Machine, Event) []Effect {
	return func(m *Machine, _ Event) []Effect { return m.checkpoint(c) }
}

func acknowledged(m *Machine, _ Event) []Effect {
	m.durable = true
	return nil
}

// ackThen notes that memory is durable and goes on with next.
func ackThen(next func(*Machine, Event) []Effect) func(*Machine, Event) []Effect {
	return func(m *Machine, ev Event) []Effect {
		m.durable = true
		return next(m, ev)
	}
}

func ask(kind EffectKind) func(*Machine, Event) []Effect {
	return func(*Machine, Event) []Effect { return []Effect{{Kind: kind}} }
}

func prepare(m *Machine, _ Event) []Effect {
	return []Effect{{Kind: EffectPrepare, NewIteration: m.newIteration()}}
}

func admit(m *Machine, _ Event) []Effect {
	fresh := m.newIteration()
	if fresh {
		m.state.IterationsStarted++
	}
	m.state.RoundsStarted++
	m.complete = false
	effects := m.checkpoint(CheckpointAdmission)
	effects[0].NewIteration = fresh
	return effects
}

// call asks for the provider call. A stop that came while its admission was
// being written ends its waits, too (S-13).
func call(m *Machine, _ Event) []Effect {
	effects := []Effect{{Kind: EffectCallProvider}}
	if m.halt != nil {
		effects = append(effects, Effect{Kind: EffectHurry})
	}
	return effects
}

// completeOnly counts a direct answer: the open iteration is complete, or the
// pending deny answered. Memory is ahead of the store until the next checkpoint.
func completeOnly(m *Machine, _ Event) []Effect {
	if m.state.IterationsCompleted < m.state.IterationsStarted {
		m.state.IterationsCompleted++
		m.durable = false
	}
	m.pendingDeny = false
	m.complete = true
	return nil
}

func completeAndClose(m *Machine, ev Event) []Effect {
	completeOnly(m, ev)
	return m.checkpoint(CheckpointRoundEnd)
}

func completeAndBound(m *Machine, ev Event) []Effect {
	completeOnly(m, ev)
	m.cutOff = true
	return boundHalted(m, ev)
}

func closeTools(m *Machine, _ Event) []Effect {
	m.complete = false
	return m.checkpoint(CheckpointRoundEnd)
}

func (m *Machine) bound(s Status, code ReasonCode, reason string) []Effect {
	m.state.Status, m.state.ReasonCode, m.state.Reason = s, code, clip(reason)
	m.runtime.Status = RuntimeFinalizing
	return m.checkpoint(CheckpointBoundary)
}

func boundHalted(m *Machine, _ Event) []Effect {
	return m.bound(m.haltStatus, m.halt.code, m.halt.reason)
}

func boundSpent(m *Machine, _ Event) []Effect {
	if m.roundsSpent() {
		return m.bound(BudgetExhausted, ReasonRounds, "all rounds are used and work remains")
	}
	return m.bound(BudgetExhausted, m.spent.code, m.spent.reason)
}

func boundFinalizing(m *Machine, _ Event) []Effect {
	m.denies = 0
	code, reason := ReasonCode(""), "all iterations are complete"
	switch {
	case m.cfg.Verifier && m.verified:
		code, reason = ReasonGoalMet, "all iterations are complete and the verifier passed"
	case m.cfg.Verifier:
		code, reason = ReasonGoalUnmet, "all iterations are complete and the verifier did not pass"
	}
	return m.bound(Finalizing, code, reason)
}

func mirror(m *Machine, _ Event) []Effect {
	if m.state.Status == Finalizing {
		m.state.Status = Completed
	}
	m.runtime.Status = RuntimeCompleted
	return m.checkpoint(CheckpointMirror)
}

func verdict(m *Machine, ev Event) []Effect {
	m.verified = ev.Passed
	// At the last iteration nothing is left to stop: a later deny must not turn
	// into a success (L-13), so the verdict is only remembered.
	if ev.Passed && !m.allDone() && m.halt == nil {
		m.halt, m.haltStatus = &request{ReasonGoalMet, "the verifier passed"}, Stopped
	}
	return nil
}

func verdictThen(next func(*Machine, Event) []Effect) func(*Machine, Event) []Effect {
	return func(m *Machine, ev Event) []Effect {
		verdict(m, ev)
		return next(m, ev)
	}
}

func denied(m *Machine, ev Event) []Effect {
	m.denies++
	m.pendingDeny = true
	return []Effect{{Kind: EffectInject, Text: ev.Reason}}
}

func endCancelled(m *Machine, _ Event) []Effect {
	m.state = Settle(m.state, OutcomeCancelled, false, m.cancel.code, m.cancel.reason)
	m.runtime.Status = RuntimeCancelled
	m.durable = false
	return []Effect{{Kind: EffectCheckpoint, Checkpoint: CheckpointEnding}}
}

func endFailed(code ReasonCode) func(*Machine, Event) []Effect {
	return func(m *Machine, ev Event) []Effect {
		m.state = Settle(m.state, OutcomeFailed, false, code, ev.Reason)
		m.runtime.Status = RuntimeFailed
		m.durable = false
		return []Effect{{Kind: EffectCheckpoint, Checkpoint: CheckpointEnding}}
	}
}

// settle makes memory failed, but leaves an ending that memory already has (M-1's last row).
func settle(m *Machine, ev Event) []Effect {
	m.failing = true
	if s := m.state.Status; s != Failed && s != Cancelled {
		m.state = Settle(m.state, OutcomeFailed, false, ReasonCheckpoint, ev.Reason)
		m.runtime.Status = RuntimeFailed
	} else {
		m.state.Revision++
	}
	m.durable = false
	return []Effect{{Kind: EffectSettle}}
}

func end(p Publication) func(*Machine, Event) []Effect {
	return func(*Machine, Event) []Effect {
		if p == "" {
			return []Effect{{Kind: EffectEnd}}
		}
		return []Effect{{Kind: EffectPublish, Publish: p}, {Kind: EffectEnd}}
	}
}

// endAsIs publishes the ending that memory has.
func endAsIs(m *Machine, ev Event) []Effect {
	if m.state.Status == Cancelled {
		return end(PublishCancelled)(m, ev)
	}
	return end(PublishFailed)(m, ev)
}

func raiseStop(m *Machine, ev Event) []Effect {
	return m.raiseHalt(Stopped, ev, ReasonOperatorStop)
}

func raiseWallTime(m *Machine, ev Event) []Effect {
	return m.raiseHalt(BudgetExhausted, ev, ReasonWallTime)
}

// raiseHalt keeps the first stop. One that comes once the loop is bound changes nothing.
func (m *Machine) raiseHalt(s Status, ev Event, code ReasonCode) []Effect {
	if m.halt != nil {
		return nil
	}
	if ev.Code != "" {
		code = ev.Code
	}
	m.halt, m.haltStatus = &request{code, ev.Reason}, s
	effects := []Effect{{Kind: EffectPublish, Publish: PublishStopRequested, Text: ev.Reason}}
	if m.phase == Calling {
		effects = append(effects, Effect{Kind: EffectHurry})
	}
	return effects
}

func raiseSpent(m *Machine, ev Event) []Effect {
	if m.spent == nil {
		code := ev.Code
		if code == "" {
			code = ReasonTokens
		}
		m.spent = &request{code, ev.Reason}
	}
	return nil
}

// expire remembers that the drain is over: also what would start only after the
// commit or answer at hand is not started.
func expire(m *Machine, _ Event) []Effect {
	m.expired = m.halt != nil
	return nil
}

func expireNow(m *Machine, ev Event) []Effect {
	expire(m, ev)
	return []Effect{{Kind: EffectInterrupt}}
}

func raiseCancel(m *Machine, ev Event) []Effect {
	if m.cancel == nil {
		code := ev.Code
		if code == "" {
			code = ReasonOperatorCancel
		}
		m.cancel = &request{code, ev.Reason}
	}
	return nil
}

func cancelNow(m *Machine, ev Event) []Effect {
	if m.cancel != nil {
		return nil
	}
	raiseCancel(m, ev)
	return []Effect{{Kind: EffectInterrupt}}
}

func fencedNow(m *Machine, ev Event) []Effect {
	return append([]Effect{{Kind: EffectInterrupt}}, fencedAtCommit(m, ev)...)
}

func fencedAtCommit(m *Machine, _ Event) []Effect {
	m.fenced = true
	m.durable = false
	return []Effect{{Kind: EffectPublish, Publish: PublishFenced}, {Kind: EffectEnd}}
}
