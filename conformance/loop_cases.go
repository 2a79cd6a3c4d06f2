package conformance

import "slices"

// loopCases are the cases of the loop profile: the counted loop, as package host
// runs it, on the backend under test.
func loopCases() []Case {
	return slices.Concat(
		checkpointCases(), nthLoopCases(),
		settleCases(),
		runningCases(),
		ownerCases(), processCases(),
		recoverCases(),
		signalLoopCases(),
		loopDurabilityCases(),
	)
}
