// Package view shows a run while it happens: as lines for people, or as one JSON
// object for each event.
package view

import (
	"sync"

	"github.com/loophost/loophost/host"
)

// Queue hands events to a reader that may be slower than the run. An observer
// must return soon: a terminal that somebody froze must not hold up a loop. What
// waits is bounded by what a loop can say at all.
type Queue struct {
	mu      sync.Mutex
	wake    *sync.Cond
	waiting []host.Event
	closed  bool
	done    chan struct{}
}

// NewQueue starts a reader: show is called for one event at a time, in order.
func NewQueue(show func(host.Event)) *Queue {
	q := &Queue{done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.read(show)
	return q
}

// Put adds an event; it never blocks on the reader.
func (q *Queue) Put(ev host.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, ev)
	q.wake.Signal()
}

// Close waits until everything was shown.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.wake.Signal()
	q.mu.Unlock()
	<-q.done
}

func (q *Queue) read(show func(host.Event)) {
	defer close(q.done)
	for {
		q.mu.Lock()
		for len(q.waiting) == 0 && !q.closed {
			q.wake.Wait()
		}
		batch := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, ev := range batch {
			show(ev)
		}
	}
}
