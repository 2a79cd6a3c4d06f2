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
		d.tell(Event{Type: EventFenced, Reason: "another owner took the session over"})
	case loop.PublishStopRequested:
		d.drain = time.NewTimer(d.spec.DrainTimeout)
		d.draining <- d.drain.C // has room: a stop counts once
		d.tell(Event{Type: EventStopRequested, Reason: e.Text})
	}
}

// tell emits a live event, and fills in who and where.
func (d *driver) tell(e Event) {
	if d.spec.Observer == nil {
		return
	}
	e.SessionID, e.ExecutionID, e.Generation = d.s.ID(), d.s.ExecutionID(), d.s.Generation()
	e.Revision, e.Time = d.s.durableMark().Revision, d.s.host.now()
	d.emit(e)
}

// project emits the events of committed entries.
func (d *driver) project(entries []pendingEntry, first, revision uint64) {
	if d.spec.Observer == nil {
		return
	}
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
