package scope

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
)

// Scope is a handle on a stored ticket scope. It is safe for many goroutines. Make
// one with Create or Open, and Close it.
type Scope struct {
	reader
	binding ticket.Binding
	limits  store.Limits

	turn    chan struct{}        // held by whoever reads or writes the record
	view    atomic.Pointer[view] // what is published; stored by whoever has the turn
	checked time.Time            // when the view was last known to be the newest; with the turn
	weak    bool                 // the newest commit may be less durable than required; with the turn
	doubt   *doubt               // an unsettled commit (T-3); with the turn
	gone    error                // ends all writing for good; with the turn

	queue queue
	busy  sync.WaitGroup // calls, and the snapshot that is being written

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when another view is published
	closed  chan struct{}
	once    sync.Once

	snapshotting atomic.Bool
}

// Create makes a scope, empty and at seq 0, and opens it. Errors: store.ErrExists,
// ticket.ScopeDenied for a bad binding.
func Create(ctx context.Context, st store.Store, b ticket.Binding, cfg Config) (*Scope, error) {
	s, err := newScope(ctx, st, b, cfg)
	if err != nil {
		return nil, err
	}
	head := newHead(b)
	data, err := head.Encode()
	if err != nil {
		return nil, err
	}
	// The same commit again is answered with its first Ack (S-3).
	if err := s.makeRecord(ctx, scopeKey(b.ScopeID), store.Commit{ID: uuid.NewString(), Head: data, Require: s.cfg.Require}); err != nil {
		return nil, err
	}
	return s.opened(ctx)
}

// Open opens a stored scope: its newest snapshot and the entries behind it. It
// changes nothing (T-2). Errors: store.ErrNotFound; ticket.ScopeDenied where the
// scope is bound otherwise; store.ErrCorrupt.
func Open(ctx context.Context, st store.Store, b ticket.Binding, cfg Config) (*Scope, error) {
	s, err := newScope(ctx, st, b, cfg)
	if err != nil {
		return nil, err
	}
	return s.opened(ctx)
}

func newScope(ctx context.Context, st store.Store, b ticket.Binding, cfg Config) (*Scope, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	s := &Scope{
		reader: reader{st, cfg.filled()}, binding: b,
		turn: make(chan struct{}, 1), changed: make(chan struct{}), closed: make(chan struct{}),
	}
	ctx, cancel := s.cfg.bounded(ctx)
	defer cancel()
	d, err := st.Describe(ctx)
	s.limits = d.Limits
	return s, err
}

func (s *Scope) opened(ctx context.Context) (*Scope, error) {
	v, err := s.reader.read(ctx, s.binding.ScopeID, nil)
	if err != nil {
		return nil, err
	}
	if v.head.Binding != s.binding {
		return nil, &ticket.Error{
			Op: "open", Key: s.binding.ScopeID, Kind: ticket.ScopeDenied,
			Detail: fmt.Sprintf("the scope is bound to session %q at binding revision %d, not to %q at %d", v.head.Binding.SupervisorSessionID, v.head.Binding.BindingRevision, s.binding.SupervisorSessionID, s.binding.BindingRevision),
		}
	}
	s.view.Store(v)
	s.checked = time.Now()
	return s, nil
}

// makeRecord creates a record; a create of unknown outcome is sent once more.
func (r reader) makeRecord(ctx context.Context, key store.Key, c store.Commit) error {
	var err error
	for range 2 {
		attempt, cancel := r.cfg.bounded(ctx)
		var ack store.Ack
		ack, err = r.store.Create(attempt, key, c)
		cancel()
		if err == nil && !ack.Durability.Reaches(c.Require) {
			return notDurable("create", key, ack, c.Require)
		}
		if !errors.Is(err, store.ErrUnknownOutcome) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func notDurable(op string, key store.Key, ack store.Ack, want store.Durability) error {
	return &store.Error{Op: op, Key: key, Kind: store.ErrNotDurable, Detail: fmt.Sprintf("the store reached %s; %s is required", ack.Durability, want)}
}

// Binding is what the scope is bound to.
func (s *Scope) Binding() ticket.Binding { return s.binding }

// State is the newest state that this handle knows: what it committed, or read
// since. It is immutable, and stays readable whatever fails and after Close (T-3).
func (s *Scope) State() *ticket.State { return s.view.Load().state }

// Refresh reads what other handles committed, and gives the newest state. Errors:
// store.ErrRegressed where what was acknowledged is lost, store.ErrFenced and
// store.ErrNotFound where the scope was deleted; after these the handle writes no more.
func (s *Scope) Refresh(ctx context.Context) (*ticket.State, error) {
	return s.refreshed(ctx, 0)
}

// refreshed is Refresh unless the view was the newest less than age ago.
func (s *Scope) refreshed(ctx context.Context, age time.Duration) (*ticket.State, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.busy.Done()
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	if time.Since(s.checked) < age {
		return s.State(), nil
	}
	v, err := s.reread(ctx)
	if err != nil {
		return nil, err
	}
	return v.state, nil
}

// reread publishes the newest state. The caller has the turn.
func (s *Scope) reread(ctx context.Context) (*view, error) {
	before := s.view.Load()
	v, err := s.reader.read(ctx, s.binding.ScopeID, before)
	if err != nil {
		return nil, s.note(err)
	}
	s.publish(v)
	return v, nil
}

// publish makes v the view. The caller has the turn.
func (s *Scope) publish(v *view) {
	s.checked = time.Now()
	if s.view.Swap(v) == v {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// latest is the view, and a channel that is closed when there is another.
func (s *Scope) latest() (*view, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Load(), s.changed
}

// note remembers an error after which nothing may be written any more, and gives it back.
func (s *Scope) note(err error) error {
	for _, kind := range []error{store.ErrRegressed, store.ErrFenced, store.ErrNotFound, store.ErrCorrupt} {
		if errors.Is(err, kind) && s.gone == nil {
			s.gone = err
		}
	}
	return err
}

// take waits for the turn.
func (s *Scope) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Scope) give() { <-s.turn }

// begin lets a call in, unless its context or the handle has ended; busy counts it.
func (s *Scope) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return s.errClosed()
	default:
		s.busy.Add(1)
		return nil
	}
}

func (s *Scope) errClosed() error {
	return &store.Error{Op: "scope", Key: scopeKey(s.binding.ScopeID), Kind: store.ErrUnavailable, Detail: "the handle is closed; open the scope again"}
}

// Close waits for the calls under way and for a snapshot that is being written, and
// frees the handle. The store stays open. Closing twice is nothing.
func (s *Scope) Close() {
	s.mu.Lock()
	s.once.Do(func() { close(s.closed) })
	s.mu.Unlock()
	s.busy.Wait()
}
