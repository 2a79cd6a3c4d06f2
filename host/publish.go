package host

import (
	"time"

	"github.com/loophost/loophost/host/loop"
)

// publish emits what the machine decided about.
func (d *driver) publish(e loop.Effect) {
	switch e.Publish {
	case loop.PublishComplete:
		d.emit(d.s.terminalEvent(EventComplete))
	case loop.PublishCancelled:
		d.emit(d.s.terminalEvent(EventCancelled))
	case loop.PublishFailed:
		d.emit(d.s.terminalEvent(EventFailed))
	case loop.PublishFenced:
		d.emit(d.live(Event{Type: EventFenced, Reason: "another owner took the session over"}))
	case loop.PublishStopRequested:
		d.drain = time.NewTimer(d.spec.DrainTimeout)
		d.emit(d.live(Event{Type: EventStopRequested, Reason: e.Text}))
	}
}

// live fills in who and where for a live event.
func (d *driver) live(e Event) Event {
	snap := d.s.Snapshot()
	e.SessionID, e.ExecutionID, e.Generation = d.s.ID(), d.s.ExecutionID(), d.s.Generation()
	e.Revision, e.Time = snap.Mark.Revision, d.s.host.now()
	return e
}

// project emits the events of committed entries.
func (d *driver) project(entries []pendingEntry, first, revision uint64) {
	for i, p := range entries {
		if ev, ok := projectEntry(d.s.ID(), p.entry, first+uint64(i), revision); ok {
			d.emit(ev)
		}
	}
}

// emit passes an event to the observer, one at a time.
func (d *driver) emit(e Event) {
	if d.spec.Observer == nil {
		return
	}
	d.emitMu.Lock()
	defer d.emitMu.Unlock()
	d.spec.Observer(e)
}

// projectEntry is the event of a committed entry; ok is false for entries that are not shown.
func projectEntry(id string, e Entry, seq, revision uint64) (Event, bool) {
	ev := Event{
		Seq: &seq, SessionID: id, ExecutionID: e.ExecutionID, Generation: e.Generation, Revision: revision, Time: e.Time,
		Iteration: e.Iteration, Round: e.Round, Message: e.Message, Hook: e.Hook, Checkpoint: e.Checkpoint, Started: e.Started,
	}
	switch e.Type {
	case EntryStarted:
		ev.Type = EventStarted
	case EntryIteration:
		ev.Type = EventIterationStarted
	case EntryRound:
		ev.Type = EventRoundStarted
	case EntryMessage:
		ev.Type = EventMessage
	case EntryHook:
		ev.Type = EventHook
	case EntryCheckpoint:
		ev.Type = EventCheckpoint
	default:
		return Event{}, false
	}
	return ev, true
}
