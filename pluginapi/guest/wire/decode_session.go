package wire

import "github.com/loophost/loophost/pluginapi"

var (
	sessionNames = []string{"id", "execution_id", "generation", "revision"}
	loopNames    = []string{"status", "max_iterations", "max_total_rounds", "iterations_started", "iterations_completed", "rounds_started"}
)

// SessionInfo takes a pluginapi.SessionInfo.
func (r *Reader) SessionInfo() (v pluginapi.SessionInfo) {
	f := r.Fields(sessionNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.ID = r.Text()
		case 1:
			v.ExecutionID = r.Text()
		case 2:
			v.Generation = r.Text()
		case 3:
			v.Revision = r.Uint64()
		}
	}
	return v
}

// LoopInfo takes a pluginapi.LoopInfo.
func (r *Reader) LoopInfo() (v pluginapi.LoopInfo) {
	f := r.Fields(loopNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Status = r.Text()
		case 1:
			v.MaxIterations = r.Uint32()
		case 2:
			v.MaxTotalRounds = r.Uint32()
		case 3:
			v.IterationsStarted = r.Uint32()
		case 4:
			v.IterationsCompleted = r.Uint32()
		case 5:
			v.RoundsStarted = r.Uint32()
		}
	}
	return v
}
