package conformance

import "slices"

// ticketCases are the cases about tickets and stop receipts: packages host/ticket,
// scope and child on the backend under test.
func ticketCases() []Case {
	return slices.Concat(
		taskCases(), proofCases(), identityCases(), orderCases(), attemptCases(), nthTicketCases(), killCases(),
	)
}
