package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// queueDefects are all the ways in which miniQueues can be broken.
var queueDefects = []defect{
	//
	"hands out what is leased", "a lease is bound to its handle", "looks, then leases", "drops an item in a hundred", "has one queue for all names", "counts nothing as leased", "counts what is leased twice",
	//
	"leases of items never run out", "each delivery is the first", "an item keeps its token", "data are gone at the second delivery", "the end of a lease wakes nobody", "extends nothing", "extends for ever",
	//
	"takes any token", "a late token counts", "the end of a lease fences", "a spent token counts", "tokens open every queue", "says not found for a late token",
	//
	"newest first", "hands out one at a time", "hands out all there is", "returns to the front", "a return waits for its lease", "a return counts no delivery",
	//
	"adds an id that waits", "adds an id that is leased", "never adds an id again", "new data replace the old ones", "looks, then adds",
	//
	"a new item wakes nobody", "a return wakes nobody", "waits on when its context has ended", "answers nothing instead of waiting", "a wait that has ended takes an item",
	//
	"loses its queues in a crash", "what is done comes back after a crash", "a closed handle takes its items along",
	//
	"cuts ids", "cuts data", "keeps text, not bytes", "takes any name", "takes any item", "takes any worker", "no time is no lease", "no number is an error",
	//
	"calls of an ended context count", "answers an ended context with an error of its own", "queues work after close", "a wait outlives its handle",
}

// miniQueues is a store whose records are a memstore's and whose queues can be broken one
// by one. Its clock stands still until it is moved.
type miniQueues struct {
	broken defect
	memory *memstore.Memory

	mu     sync.Mutex
	now    time.Time
	queues map[string]*miniQueue
	tokens int
	added  int
	grown  chan struct{}
}

type miniQueue struct {
	items []*miniItem // in order
	done  []*miniItem
}

type miniItem struct {
	store.Item
	by       *queueHandle
	token    string
	late     []string // tokens from before
	delivery uint64
	expires  time.Time // zero: waiting
}

type queueHandle struct {
	store.Store
	m      *miniQueues
	closed bool
	ended  chan struct{}
}

func newMiniQueues(d defect) *miniQueues {
	return &miniQueues{broken: d, memory: memstore.New(), now: time.Unix(1_900_000_000, 0), queues: map[string]*miniQueue{}, grown: make(chan struct{})}
}

// The harness.

func (m *miniQueues) Open(context.Context) (store.Store, error) {
	return &queueHandle{Store: m.memory.Open(), m: m, ended: make(chan struct{})}, nil
}

func (m *miniQueues) Environment(context.Context) (Environment, error) {
	return Environment{Name: "the suite's own test", Values: map[string]string{"defect": string(m.broken)}}, nil
}

func (m *miniQueues) AdvanceLeases(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	if m.broken != "the end of a lease wakes nobody" {
		m.wake()
	}
}

func (m *miniQueues) Crash(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queues {
		switch m.broken {
		case "loses its queues in a crash":
			q.items = nil
		case "what is done comes back after a crash":
			q.items = append(q.done, q.items...)
		}
	}
	return nil
}

func (m *miniQueues) wake() {
	close(m.grown)
	m.grown = make(chan struct{})
}

// The store.

func (h *queueHandle) is(d defect) bool { return h.m.broken == d }

func (h *queueHandle) Describe(ctx context.Context) (store.Description, error) {
	d, err := h.Store.Describe(ctx)
	d.Durability.Level = store.LevelProcess
	return d, err
}

func (h *queueHandle) Close() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if !h.closed {
		h.closed = true
		if !h.is("a wait outlives its handle") {
			close(h.ended)
		}
		if h.is("a closed handle takes its items along") {
			for _, q := range h.m.queues {
				q.items = slices.DeleteFunc(q.items, func(i *miniItem) bool { return i.by == h })
			}
		}
	}
	return h.Store.Close()
}

// queue locks the store and finds the queue; the caller unlocks.
func (h *queueHandle) queue(ctx context.Context, op, name string) (*miniQueue, error) {
	h.m.mu.Lock()
	if err := ctx.Err(); err != nil && !h.is("calls of an ended context count") {
		if h.is("answers an ended context with an error of its own") {
			return nil, &store.Error{Op: op, Kind: store.ErrUnavailable, Err: err}
		}
		return nil, err
	}
	if h.closed && !h.is("queues work after close") {
		return nil, &store.Error{Op: op, Key: store.QueueKey(name), Kind: store.ErrUnavailable}
	}
	if err := store.CheckQueue(op, name); err != nil && !h.is("takes any name") {
		return nil, err
	}
	if h.is("has one queue for all names") {
		name = "one"
	}
	q := h.m.queues[name]
	if q == nil {
		q = &miniQueue{}
		h.m.queues[name] = q
	}
	return q, nil
}

func (h *queueHandle) Enqueue(ctx context.Context, name string, item store.Item) error {
	q, err := h.queue(ctx, "enqueue", name)
	defer h.m.mu.Unlock()
	if err != nil {
		return err
	}
	if err := item.Validate("any"); err != nil && !h.is("takes any item") {
		return err
	}
	if h.is("cuts ids") && len(item.ID) > 100 {
		item.ID = item.ID[:100]
	}
	if h.is("cuts data") && len(item.Data) > 1000 {
		item.Data = item.Data[:1000]
	}
	if h.is("keeps text, not bytes") && !utf8.Valid(item.Data) {
		item.Data = bytes.ToValidUTF8(item.Data, []byte("?"))
	}
	item.Data = bytes.Clone(item.Data)
	if h.m.added++; h.is("drops an item in a hundred") && h.m.added%23 == 22 {
		return nil
	}
	same := func(i *miniItem) bool { return i.ID == item.ID }
	if h.is("looks, then adds") {
		there := slices.ContainsFunc(q.items, same)
		h.pause()
		if there {
			return nil
		}
	} else if at := slices.IndexFunc(q.items, same); at >= 0 {
		i := q.items[at]
		if h.is("new data replace the old ones") {
			i.Data = item.Data
		}
		if !(h.is("adds an id that waits") && i.token == "" || h.is("adds an id that is leased") && i.token != "") {
			return nil
		}
	}
	if h.is("never adds an id again") && slices.ContainsFunc(q.done, same) {
		return nil
	}
	q.items = append(q.items, &miniItem{Item: item, by: h})
	if !h.is("a new item wakes nobody") {
		h.m.wake()
	}
	return nil
}

// pause lets others in between a look and a change.
func (h *queueHandle) pause() {
	h.m.mu.Unlock()
	timer := time.NewTimer(time.Millisecond)
	<-timer.C
	h.m.mu.Lock()
}

func (h *queueHandle) Lease(ctx context.Context, name, worker string, ttl time.Duration, max int) ([]store.Leased, error) {
	if max == 0 && h.is("no number is an error") {
		return nil, &store.Error{Op: "lease", Key: store.QueueKey(name), Kind: store.ErrUnsupported}
	}
	noTime := ttl == 0 && h.is("no time is no lease")
	ttl, max, err := store.CheckLease("any", worker, ttl, max)
	switch {
	case err != nil && !h.is("takes any worker"):
		return nil, err
	case err != nil:
		ttl, max = time.Hour, 1
	case h.is("hands out one at a time"):
		max = 1
	case h.is("hands out all there is"):
		max = 1000
	case noTime:
		ttl = 0
	}
	for {
		q, err := h.queue(ctx, "lease", name)
		var out []store.Leased
		if err == nil {
			out = h.lease(q, ttl, max)
		}
		grown := h.m.grown
		h.m.mu.Unlock()
		if err != nil || len(out) > 0 {
			return out, err
		}
		ended := ctx.Done()
		if h.is("waits on when its context has ended") {
			ended = nil // to the end of the handle
		}
		select {
		case <-grown:
		case <-h.ended:
		case <-ended:
			switch {
			case h.is("answers nothing instead of waiting"):
				return nil, nil
			case h.is("a wait that has ended takes an item"):
				go func() {
					select {
					case <-grown:
						_, _ = h.Lease(context.Background(), name, worker, ttl, max)
					case <-h.ended:
					}
				}()
			}
			return nil, ctx.Err()
		}
	}
}

func (h *queueHandle) lease(q *miniQueue, ttl time.Duration, max int) (out []store.Leased) {
	var over, waiting, chosen []*miniItem
	for _, i := range q.items {
		switch free := i.token == ""; {
		case free:
			waiting = append(waiting, i)
		case h.is("hands out what is leased"), h.is("a lease is bound to its handle") && i.by != h,
			!h.m.now.Before(i.expires) && !h.is("leases of items never run out"):
			over = append(over, i)
		}
	}
	if h.is("newest first") {
		slices.Reverse(waiting)
	}
	chosen = append(over, waiting...)
	chosen = chosen[:min(max, len(chosen))]
	if h.is("looks, then leases") && len(chosen) > 0 {
		h.pause()
	}
	for _, i := range chosen {
		if i.token != "" {
			i.late = append(i.late, i.token)
		}
		if h.m.tokens++; i.token == "" && len(i.late) == 0 || !h.is("an item keeps its token") {
			i.token = fmt.Sprint("token ", h.m.tokens)
		}
		i.by, i.expires = h, h.m.now.Add(ttl)
		if i.delivery++; h.is("each delivery is the first") {
			i.delivery = 1
		}
		l := store.Leased{Item: store.Item{ID: i.ID, Data: bytes.Clone(i.Data)}, Token: i.token, Delivery: i.delivery, Expires: i.expires}
		if h.is("data are gone at the second delivery") && i.delivery > 1 {
			l.Data = nil
		}
		out = append(out, l)
	}
	return out
}

// held is the place of the item that a token opens.
func (h *queueHandle) held(q *miniQueue, op, name, token string) (*miniQueue, int, error) {
	open := func(i *miniItem) bool {
		switch {
		case h.is("the end of a lease fences") && !h.m.now.Before(i.expires):
			return false
		case h.is("a late token counts") && slices.Contains(i.late, token):
			return true
		case h.is("takes any token"):
			return i.token != ""
		}
		return i.token != "" && i.token == token
	}
	if at := slices.IndexFunc(q.items, open); at >= 0 {
		return q, at, nil
	}
	if h.is("tokens open every queue") {
		for _, other := range h.m.queues {
			if at := slices.IndexFunc(other.items, open); at >= 0 {
				return other, at, nil
			}
		}
	}
	err := store.NotLeased(op, name)
	if h.is("says not found for a late token") {
		err = &store.Error{Op: op, Key: store.QueueKey(name), Kind: store.ErrNotFound}
	}
	return q, -1, err
}

func (h *queueHandle) Extend(ctx context.Context, name, token string, ttl time.Duration) error {
	q, err := h.queue(ctx, "extend", name)
	defer h.m.mu.Unlock()
	if err != nil {
		return err
	}
	q, at, err := h.held(q, "extend", name, token)
	switch {
	case err != nil:
		return err
	case h.is("extends nothing"):
		return nil
	case h.is("extends for ever"):
		ttl = 1000 * time.Hour
	case ttl <= 0:
		ttl = store.DefaultTTL
	}
	q.items[at].expires = h.m.now.Add(ttl)
	return nil
}

func (h *queueHandle) Done(ctx context.Context, name, token string) error {
	q, err := h.queue(ctx, "done", name)
	defer h.m.mu.Unlock()
	if err != nil {
		return err
	}
	if h.is("a spent token counts") && slices.ContainsFunc(q.done, func(i *miniItem) bool { return i.token == token || slices.Contains(i.late, token) }) {
		return nil
	}
	q, at, err := h.held(q, "done", name, token)
	if err != nil {
		return err
	}
	q.done = append(q.done, q.items[at])
	q.items = slices.Delete(q.items, at, at+1)
	return nil
}

func (h *queueHandle) Return(ctx context.Context, name, token string) error {
	q, err := h.queue(ctx, "return", name)
	defer h.m.mu.Unlock()
	if err != nil {
		return err
	}
	q, at, err := h.held(q, "return", name, token)
	if err != nil || h.is("a return waits for its lease") {
		return err
	}
	i := q.items[at]
	i.late, i.token = append(i.late, i.token), ""
	if h.is("an item keeps its token") {
		i.late = nil
	}
	if h.is("a return counts no delivery") {
		i.delivery--
	}
	q.items = slices.Delete(q.items, at, at+1)
	if h.is("returns to the front") {
		at = 0
	} else {
		at = len(q.items)
	}
	q.items = slices.Insert(q.items, at, i)
	if !h.is("a return wakes nobody") {
		h.m.wake()
	}
	return nil
}

func (h *queueHandle) Queued(ctx context.Context, name string) (b store.Backlog, err error) {
	q, err := h.queue(ctx, "queued", name)
	defer h.m.mu.Unlock()
	if err != nil {
		return b, err
	}
	for _, i := range q.items {
		leased := i.token != "" && (h.m.now.Before(i.expires) || h.is("leases of items never run out"))
		if leased && !h.is("counts nothing as leased") {
			b.Leased++
		}
		if !leased || h.is("counts what is leased twice") {
			b.Waiting++
		}
	}
	return b, nil
}
