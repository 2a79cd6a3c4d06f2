package ticket

import (
	"errors"
	"fmt"
)

// Apply is the state after a stored entry, the next one in order. An entry that
// does not fit is an error: the log is not the one of this state.
func (s *State) Apply(e *Entry) (*State, error) {
	if e.Seq != s.seq+1 {
		return nil, &Error{Op: "apply", Kind: AuthorityUnavailable, Detail: fmt.Sprintf("entry %d can't follow seq %d", e.Seq, s.seq)}
	}
	r, err := decodeReceipt(e.Receipt)
	if err != nil {
		return nil, &Error{Op: "apply", Kind: AuthorityUnavailable, Detail: fmt.Sprintf("the receipt of entry %d can't be read", e.Seq), Err: err}
	}
	if _, known := s.receipts.Get(r.OperationID); known || r.CommittedSeq != e.Seq {
		return nil, &Error{Op: "apply", Kind: AuthorityUnavailable, Detail: fmt.Sprintf("the receipt of entry %d is another's", e.Seq)}
	}
	n := *s
	for i := range e.Events {
		if err := n.put(&e.Events[i]); err != nil {
			return nil, &Error{Op: "apply", Kind: AuthorityUnavailable, Detail: fmt.Sprintf("event %d of entry %d", i, e.Seq), Err: err}
		}
	}
	n.receipts = n.receipts.Put(r.OperationID, e.Receipt)
	n.seq++
	return &n, nil
}

// put lets an event happen. s is the caller's own copy. What ev points to becomes
// the state's, and must not change any more.
func (s *State) put(ev *Event) error {
	if ev.Authority != nil {
		s.authority = *ev.Authority
		for a := range s.Live() {
			a = a.clone()
			a.AuthorityEpoch = ev.Authority.Epoch
			s.assignments = s.assignments.Put(a.ID, a)
		}
	}
	if t := ev.Ticket; t != nil {
		if t.Contract == nil {
			old, ok := s.tickets.Get(t.ID)
			if !ok {
				return fmt.Errorf("ticket %q has no contract", t.ID)
			}
			t = t.clone()
			t.Contract = old.Contract
		}
		if why := t.whole(); why != "" {
			return errors.New(why)
		}
		s.putTicket(t)
	}
	if a := ev.Assignment; a != nil {
		if _, ok := s.tickets.Get(a.Ticket); !ok {
			return fmt.Errorf("assignment %q is of no ticket", a.ID)
		}
		if why := a.whole(); why != "" {
			return errors.New(why)
		}
		s.putAssignment(a)
	}
	if ev.Submission != nil {
		s.submissions = s.submissions.Put(ev.Submission.ID, ev.Submission)
	}
	if ev.Intent != nil {
		s.intents = s.intents.Put(ev.Intent.Assignment, ev.Intent)
	}
	if ev.IntentDone != "" {
		s.intents = s.intents.Delete(ev.IntentDone)
	}
	return nil
}

func (s *State) putTicket(t *Ticket) {
	s.tickets = s.tickets.Put(t.ID, t)
	if t.State == Ready {
		s.ready = s.ready.Put(t.ID, struct{}{})
	} else {
		s.ready = s.ready.Delete(t.ID)
	}
}

func (s *State) putAssignment(a *Assignment) {
	s.assignments = s.assignments.Put(a.ID, a)
	if a.State.live() || a.State == OutcomeUnknown {
		s.open = s.open.Put(a.ID, struct{}{})
	} else {
		s.open = s.open.Delete(a.ID)
	}
}
