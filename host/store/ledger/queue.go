package ledger

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/loophost/loophost/host/store"
)

// Queue is the rules of one queue as a pure value, for a backend that keeps a queue's
// state in memory: it reads no clock and does no I/O. D is what the backend knows of an
// item's data: the bytes, or where they are. The zero value is an empty queue. It is not
// safe for concurrent use.
//
// A change of a backend asks first (Has, Next, Holds), writes, and then tells the Queue
// what it wrote (Add, Hold, Extend, Remove, Back). What a backend reads back from a
// journal it tells in the same words. Every call costs O(log n).
type Queue[D any] struct {
	byID    map[string]*Unit[D]
	byToken map[string]*Unit[D]
	waiting list.List // of *Unit[D], oldest first
	leased  leases[D] // soonest end first
}

// Unit is an item as a Queue keeps it; only a Queue changes it.
type Unit[D any] struct {
	ID       string
	Data     D
	Token    string // of the newest hand-out; "": waiting
	Worker   string // who got it
	Delivery uint64 // how often it was handed out
	Expires  time.Time

	place *list.Element // nil: leased
	at    int           // in the heap of leases
}

// Has reports whether the item is waiting or leased.
func (q *Queue[D]) Has(id string) bool { return q.byID[id] != nil }

// Len is how many items there are.
func (q *Queue[D]) Len() int { return len(q.byID) }

// Add puts an item that is not there at the end; it was handed out delivery times before.
func (q *Queue[D]) Add(id string, data D, delivery uint64) {
	if q.byID == nil {
		q.byID, q.byToken = map[string]*Unit[D]{}, map[string]*Unit[D]{}
	}
	u := &Unit[D]{ID: id, Data: data, Delivery: delivery}
	q.byID[id] = u
	u.place = q.waiting.PushBack(u)
}

// Next are the items, at most max, that can be handed out at now: those whose lease ran
// out, then those that wait.
func (q *Queue[D]) Next(now time.Time, max int) []*Unit[D] {
	var out []*Unit[D]
	// What is over stands at the top of the heap, and below what is over.
	for todo := []int{0}; len(todo) > 0 && len(out) < max; todo = todo[1:] {
		i := todo[0]
		if i < len(q.leased) && !now.Before(q.leased[i].Expires) {
			out = append(out, q.leased[i])
			todo = append(todo, 2*i+1, 2*i+2)
		}
	}
	for e := q.waiting.Front(); e != nil && len(out) < max; e = e.Next() {
		out = append(out, e.Value.(*Unit[D]))
	}
	return out
}

// Hold hands the item out; false: it is not there.
func (q *Queue[D]) Hold(id, token, worker string, expires time.Time) bool {
	u := q.byID[id]
	if u == nil {
		return false
	}
	delete(q.byToken, u.Token)
	u.Token, u.Worker, u.Expires = token, worker, expires
	u.Delivery++
	q.byToken[token] = u
	if u.place == nil {
		heap.Fix(&q.leased, u.at)
		return true
	}
	q.waiting.Remove(u.place)
	u.place = nil
	heap.Push(&q.leased, u)
	return true
}

// Holds is the item whose current token it is, or nil.
func (q *Queue[D]) Holds(token string) *Unit[D] { return q.byToken[token] }

// Extend moves the end of a lease; false: the token is not current.
func (q *Queue[D]) Extend(token string, expires time.Time) bool {
	u := q.byToken[token]
	if u == nil {
		return false
	}
	u.Expires = expires
	heap.Fix(&q.leased, u.at)
	return true
}

// Remove takes the item away; false: the token is not current.
func (q *Queue[D]) Remove(token string) bool {
	u := q.byToken[token]
	if u == nil {
		return false
	}
	q.free(u)
	delete(q.byID, u.ID)
	return true
}

// Back puts the item at the end; false: the token is not current.
func (q *Queue[D]) Back(token string) bool {
	u := q.byToken[token]
	if u == nil {
		return false
	}
	q.free(u)
	u.Token, u.Worker, u.Expires = "", "", time.Time{}
	u.place = q.waiting.PushBack(u)
	return true
}

func (q *Queue[D]) free(u *Unit[D]) {
	delete(q.byToken, u.Token)
	heap.Remove(&q.leased, u.at)
}

// Backlog counts at now.
func (q *Queue[D]) Backlog(now time.Time) store.Backlog {
	b := store.Backlog{Waiting: uint64(q.waiting.Len())}
	for _, u := range q.leased {
		if now.Before(u.Expires) {
			b.Leased++
		} else {
			b.Waiting++
		}
	}
	return b
}

// Soonest is when the first lease ends; the zero time: nothing is leased.
func (q *Queue[D]) Soonest() time.Time {
	if len(q.leased) == 0 {
		return time.Time{}
	}
	return q.leased[0].Expires
}

// All visits every item: the leased ones, then those that wait, oldest first.
func (q *Queue[D]) All(visit func(*Unit[D])) {
	for _, u := range q.leased {
		visit(u)
	}
	for e := q.waiting.Front(); e != nil; e = e.Next() {
		visit(e.Value.(*Unit[D]))
	}
}

// leases is a heap by the end of the lease.
type leases[D any] []*Unit[D]

func (l leases[D]) Len() int           { return len(l) }
func (l leases[D]) Less(i, j int) bool { return l[i].Expires.Before(l[j].Expires) }
func (l leases[D]) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}

func (l *leases[D]) Push(x any) {
	u := x.(*Unit[D])
	u.at = len(*l)
	*l = append(*l, u)
}

func (l *leases[D]) Pop() any {
	old := *l
	u := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return u
}
