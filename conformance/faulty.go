package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
)

// Op is a method of the store port.
type Op string

// The operations that Faulty records and fails, by the names of their methods.
const (
	OpDescribe Op = "describe"
	OpCreate   Op = "create"
	OpAcquire  Op = "acquire"
	OpRenew    Op = "renew"
	OpRelease  Op = "release"
	OpCommit   Op = "commit"
	OpResolve  Op = "resolve"
	OpSignal   Op = "signal"
	OpLoad     Op = "load"
	OpReadLog  Op = "read log"
	OpList     Op = "list"
	OpDelete   Op = "delete"
	OpWatch    Op = "watch signals"
	OpCheck    Op = "check"
)

// When says where a fault strikes.
type When int

const (
	// Before: the call never reaches the store.
	Before When = iota
	// After: the store does the work, and its answer is lost.
	After
	// Torn: the call is cut while the store works on it (its context ends), and
	// the answer is lost; only the store knows whether the work was done.
	Torn
)

// String is the word for w.
func (w When) String() string {
	switch w {
	case Before:
		return "before it reached the store"
	case After:
		return "after the store did it"
	default:
		return "while the store did it"
	}
}

// Call is one recorded call.
type Call struct {
	N      int // 1 for the first call of the wrapper
	Op     Op
	Key    store.Key
	Fence  store.Fence
	Commit store.Commit // of create and commit
	Claim  store.Claim  // of acquire
	Signal store.Signal // of signal
	ID     string       // of resolve: the commit id
	Failed bool         // a fault struck it
	Err    error        // what the caller got
}

// Fault is one fault to inject.
type Fault struct {
	Op    Op              // "": any operation
	Match func(Call) bool // nil: every call; Call.Err and Call.Failed are not set yet
	Nth   int             // the first matching call that fails, from 1; 0: 1
	Times int             // how many matching calls fail from there on; 0: 1; negative: all
	When  When
	// Err is what the caller gets; nil: a *store.Error that is ErrUnavailable, or
	// ErrUnknownOutcome for Torn.
	Err error
	// Then runs when the fault has struck, before the caller gets the error: to
	// let somebody else act at exactly this point. It may be nil.
	Then func()
}

type armed struct {
	Fault
	seen, struck int
}

// Faulty wraps a store: it records every call and fails those that its faults
// choose. It is safe for concurrent use if the inner store is. Give Store() to
// the code under test.
type Faulty struct {
	inner store.Store

	mu     sync.Mutex
	calls  []Call
	faults []*armed
}

// NewFaulty wraps inner; without faults it only records.
func NewFaulty(inner store.Store, faults ...Fault) *Faulty {
	f := &Faulty{inner: inner}
	f.Inject(faults...)
	return f
}

// Inject adds faults; they count matching calls from now on. Where two match a
// call, the one that was injected first strikes.
func (f *Faulty) Inject(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range faults {
		x.Nth = max(x.Nth, 1)
		if x.Times == 0 {
			x.Times = 1
		}
		f.faults = append(f.faults, &armed{Fault: x})
	}
}

// Heal removes all faults.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Struck is how many calls faults have failed so far.
func (f *Faulty) Struck() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c.Failed {
			n++
		}
	}
	return n
}

// Calls are the calls so far, in the order in which they began. A call that has
// not returned has no Err yet.
func (f *Faulty) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count is how many calls of op were made.
func (f *Faulty) Count(op Op) int {
	n := 0
	for _, c := range f.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// begin records c and chooses the fault that strikes it, if any.
func (f *Faulty) begin(c Call) (int, *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.N = len(f.calls) + 1
	var hit *Fault
	for _, a := range f.faults {
		if a.Op != "" && a.Op != c.Op || a.Match != nil && !a.Match(c) {
			continue
		}
		a.seen++
		if hit == nil && a.seen >= a.Nth && (a.Times < 0 || a.struck < a.Times) {
			a.struck++
			hit = &a.Fault
		}
	}
	c.Failed = hit != nil
	f.calls = append(f.calls, c)
	return c.N - 1, hit
}

func (f *Faulty) end(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[i].Err = err
}

var errInjected = errors.New("injected fault")

func (x *Fault) error(c Call) error {
	if x.Err != nil {
		return x.Err
	}
	kind := store.ErrUnavailable
	if x.When == Torn {
		kind = store.ErrUnknownOutcome
	}
	return &store.Error{Op: string(c.Op), Key: c.Key, Kind: kind, Detail: "failed " + x.When.String(), Err: errInjected}
}

// tornWithin bounds the moment at which a torn call is cut.
const tornWithin = 200 * time.Microsecond

// do runs one call under the faults.
func do[T any](ctx context.Context, f *Faulty, c Call, call func(context.Context) (T, error)) (T, error) {
	i, x := f.begin(c)
	var zero T
	if x == nil {
		v, err := call(ctx)
		f.end(i, err)
		return v, err
	}
	switch x.When {
	case After:
		_, _ = call(ctx) // the answer is what gets lost
	case Torn:
		cut, cancel := context.WithTimeout(ctx, tornWithin)
		_, _ = call(cut)
		cancel()
	}
	if x.Then != nil {
		x.Then()
	}
	err := x.error(c)
	f.end(i, err)
	return zero, err
}

// do0 is do for calls that return only an error.
func do0(ctx context.Context, f *Faulty, c Call, call func(context.Context) error) error {
	_, err := do(ctx, f, c, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}
