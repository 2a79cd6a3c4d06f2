package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a queue (each an error, never a truncation).
const (
	MaxQueueBytes  = 64       // of a queue's name
	MaxItemIDBytes = 1024     // of Item.ID
	MaxItemBytes   = 64 << 10 // of Item.Data: 64 KiB
	MaxLeases      = 100      // items that one Lease hands out
)

// Queue is the optional ability to hand work to whoever asks for it: capability
// "queue". A store has any number of queues; one is there as soon as it is named.
//
//	        Enqueue             Lease                    Done
//	absent ────────▶ waiting ─────────▶ leased, token ────────▶ absent
//	                   ▲                     │
//	                   └── Return, or the ───┘
//	                       lease ran out
//
// A queue only hints at what is to be done. It delivers at least once: an item comes
// again when its lease ran out, and when an answer was lost. Who did the work is
// decided by a commit of the record that the work is about, never by a queue (S-2,
// S-8). So losing a queue loses no fact, only time, and whoever knows of work may
// enqueue it again: an id that is there already is not added twice.
//
// Items that were never delivered come in the order in which they were enqueued, and
// those whose lease ran out come before them. A lease runs by the store's clock, and ends
// sooner where the store knows that its worker is gone (capability "liveness"): its
// process ended, or the handle that leased was closed. Its
// end alone takes nothing away: a token stays the current one until the item is handed
// to somebody else.
//
// Every method may be called by many goroutines and processes at once. The name of a
// queue is 1 to 64 characters of a-z, 0-9, - and _ (else ErrInvalidID). ErrUnavailable
// says that nothing was changed, ErrUnknownOutcome that it may have been; doing it
// again is right after both.
type Queue interface {
	// Enqueue adds the item at the end; when it returns, the item is as durable as the
	// store's description promises. An item whose id is waiting or leased already is
	// left as it is, its data too. Errors: ErrInvalidID, ErrTooLarge.
	Enqueue(ctx context.Context, queue string, item Item) error
	// Lease hands out up to max items (0: one; more than MaxLeases is MaxLeases) to
	// worker for ttl (0: DefaultTTL), and waits until there is one: until then it
	// answers nothing, or the context's error. worker is a name for people, at most 256
	// bytes of UTF-8. After ErrUnknownOutcome items may be leased that nobody holds;
	// they come again when that lease ran out. Errors: ErrTooLarge, ErrUnsupported
	// (worker is not UTF-8).
	Lease(ctx context.Context, queue, worker string, ttl time.Duration, max int) ([]Leased, error)
	// Extend lets the lease end ttl from now (0: DefaultTTL). Errors: ErrFenced.
	Extend(ctx context.Context, queue, token string, ttl time.Duration) error
	// Done removes the item. Errors: ErrFenced, also when it is done already.
	Done(ctx context.Context, queue, token string) error
	// Return puts the item at the end of the queue, where somebody gets it without
	// waiting for the lease. At the end, because what one worker can't do must not keep
	// it from what waits behind. Errors: ErrFenced.
	Return(ctx context.Context, queue, token string) error
	// Queued counts the items, for people: it is old when it arrives.
	Queued(ctx context.Context, queue string) (Backlog, error)
}

// Item is a piece of work.
type Item struct {
	// ID names the work, such as a dispatch key: 1 to 1,024 bytes of UTF-8. A queue
	// holds it once. Whoever has news for work that is leased enqueues another id.
	ID   string `json:"id"`
	Data []byte `json:"data"` // opaque, at most 64 KiB; nil and empty are the same
}

// Leased is an item that was handed out.
type Leased struct {
	Item
	// Token says which hand-out this is; it is never given twice. ErrFenced answers a
	// token that is not the item's current one: stop working on it.
	Token    string    `json:"token"`
	Delivery uint64    `json:"delivery"` // how often the item was handed out, 1 for the first time
	Expires  time.Time `json:"expires"`  // by the store's clock
}

// Backlog counts a queue's items.
type Backlog struct {
	Waiting uint64 `json:"waiting"` // those too whose lease ran out
	Leased  uint64 `json:"leased"`
}

// QueueKey names a queue in errors.
func QueueKey(queue string) Key { return Key{Kind: "queue", ID: queue} }

// CheckQueue checks the name of a queue as every backend does, for the method op.
// Errors: ErrInvalidID.
func CheckQueue(op, queue string) error {
	if queue == "" || len(queue) > MaxQueueBytes || strings.Trim(queue, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return &Error{Op: op, Key: QueueKey(queue), Kind: ErrInvalidID, Detail: "the name of a queue must be 1 to 64 characters of a-z, 0-9, - and _"}
	}
	return nil
}

// Validate checks what every backend checks before it adds the item. Errors:
// ErrInvalidID, ErrTooLarge.
func (i Item) Validate(queue string) error {
	const op = "enqueue"
	if err := CheckQueue(op, queue); err != nil {
		return err
	}
	why := ""
	switch {
	case i.ID == "" || len(i.ID) > MaxItemIDBytes:
		why = fmt.Sprintf("the item's id has %d bytes; it needs 1 to %d", len(i.ID), MaxItemIDBytes)
	case !utf8.ValidString(i.ID):
		why = "the item's id is not valid UTF-8"
	case len(i.Data) > MaxItemBytes:
		return tooLarge(op, QueueKey(queue), "the item's data", int64(len(i.Data)), MaxItemBytes)
	default:
		return nil
	}
	return &Error{Op: op, Key: QueueKey(queue), Kind: ErrInvalidID, Detail: why}
}

// CheckLease checks what every backend checks before it hands out items, and fills in
// what was left to the store. Errors: ErrInvalidID, ErrTooLarge, ErrUnsupported.
func CheckLease(queue, worker string, ttl time.Duration, max int) (time.Duration, int, error) {
	const op = "lease"
	if err := CheckQueue(op, queue); err != nil {
		return 0, 0, err
	}
	if len(worker) > MaxOwnerBytes {
		return 0, 0, tooLarge(op, QueueKey(queue), "the worker", int64(len(worker)), MaxOwnerBytes)
	}
	if !utf8.ValidString(worker) {
		return 0, 0, &Error{Op: op, Key: QueueKey(queue), Kind: ErrUnsupported, Detail: "the worker is not valid UTF-8"}
	}
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	if max <= 0 {
		max = 1
	}
	return ttl, min(max, MaxLeases), nil
}

// NotLeased is the ErrFenced of a token that is not current.
func NotLeased(op, queue string) error {
	return &Error{Op: op, Key: QueueKey(queue), Kind: ErrFenced, Detail: "the token is not the item's current one: it is done, or its lease ran out and somebody else has it"}
}
