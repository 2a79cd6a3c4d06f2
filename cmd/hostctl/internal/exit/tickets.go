package exit

// TicketOutcomes are the outcomes of a ticket, the worst first: what needs somebody
// to act comes before what goes on by itself, and that before what is over.
func TicketOutcomes() []Outcome {
	return []Outcome{OutcomeFailed, OutcomeNeedsPerson, OutcomeSubmitted, OutcomeUnderWay, OutcomeCancelled, OutcomeAccepted}
}

// Worst is the outcome of several tickets together: the worst of theirs. It is
// accepted only where each is; of none it is error, since nothing was accepted.
func Worst(each []Outcome) Outcome {
	have := map[Outcome]bool{}
	for _, o := range each {
		have[o] = true
	}
	for _, o := range TicketOutcomes() {
		if have[o] {
			return o
		}
	}
	return OutcomeError
}
