package conformance

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// Env is what a running case works with: handles, names of its own, and
// randomness that depends on nothing but the seed and the case's id.
type Env struct {
	Harness Harness
	Store   store.Description // what a handle described before the first case
	Rand    *rand.Rand        // not safe for concurrent use

	patience time.Duration // until something that should happen counts as lost

	kind store.Kind // the case's own kind of record
	name string     // the case's own prefix for ids of kinds that it shares with others

	mu      sync.Mutex
	handles []store.Store
	kinds   map[store.Kind]bool // kinds that only this case writes
	keys    map[store.Key]bool  // records of other kinds
	queued  []string            // queues
	notes   []string
	ends    []func() // what must end before the handles do
}

// newEnv makes the environment of one case. The namespace keeps two runs on
// one store apart; the seed decides everything else.
func newEnv(h Harness, d store.Description, o Options, id string) *Env {
	sum := fnv.New64a()
	io.WriteString(sum, id) // a hash never fails
	stream := sum.Sum64()
	io.WriteString(sum, o.Namespace)
	tag := hex.EncodeToString(sum.Sum(nil))
	e := &Env{
		Harness: h, Store: d,
		Rand:     rand.New(rand.NewPCG(o.Seed, stream)),
		patience: o.patience,
		kind:     store.Kind("t" + tag),
		name:     "conformance-" + tag,
		kinds:    map[store.Kind]bool{}, keys: map[store.Key]bool{},
	}
	e.kinds[e.kind] = true
	return e
}

// Open opens a handle that is closed when the case ends.
func (e *Env) Open(ctx context.Context) (store.Store, error) {
	s, err := e.Harness.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a handle: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handles = append(e.handles, s)
	return s, nil
}

// Open2 opens two handles.
func (e *Env) Open2(ctx context.Context) (a, b store.Store, err error) {
	if a, err = e.Open(ctx); err != nil {
		return nil, nil, err
	}
	b, err = e.Open(ctx)
	return a, b, err
}

// Key names a record that only this case uses; one owner at a time.
func (e *Env) Key(id string) store.Key { return store.Key{Kind: e.kind, ID: id} }

// SharedKey names a record of a shared kind that only this case uses.
func (e *Env) SharedKey(id string) store.Key {
	k := store.Key{Kind: store.KindScope, ID: e.name + "-" + id}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys[k] = true
	return k
}

// SubKind is another kind that only this case uses: the case's own with suffix.
func (e *Env) SubKind(suffix string) store.Kind {
	k := e.kind + store.Kind(suffix)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds[k] = true
	return k
}

// UUID draws a UUID from the seed.
func (e *Env) UUID() string {
	var b [16]byte
	for i := 0; i < len(b); i += 8 {
		n := e.Rand.Uint64()
		for j := range 8 {
			b[i+j] = byte(n >> (8 * j))
		}
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return uuid.UUID(b).String()
}

// atEnd calls f when the case is over, before its handles are closed.
func (e *Env) atEnd(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, f)
}

// Note adds a remark to the case's result: what could not be tried, and why.
func (e *Env) Note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// cleanupTime bounds the deletion of what a case left.
const cleanupTime = 20 * time.Second

// close deletes what the case made and closes its handles. A store that fails
// here has failed a case already, or will; so errors are not reported.
func (e *Env) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	e.mu.Lock()
	ends := e.ends
	e.ends = nil
	e.mu.Unlock()
	for _, end := range slices.Backward(ends) {
		end()
	}
	if s, err := e.Harness.Open(ctx); err == nil {
		for _, k := range e.leftovers(ctx, s) {
			remove(ctx, s, k)
		}
		e.drain(ctx, s)
		s.Close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.handles {
		h.Close()
	}
}

// maxLeftovers bounds the clean-up against a store whose list never ends.
const maxLeftovers = 10_000

func (e *Env) leftovers(ctx context.Context, s store.Store) []store.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	var keys []store.Key
	for k := range e.keys {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b store.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, kind := range slices.Sorted(maps.Keys(e.kinds)) {
		q := store.Query{Kind: kind}
		for len(keys) < maxLeftovers {
			page, err := s.List(ctx, q)
			if err != nil {
				break
			}
			for _, it := range page.Items {
				if e.kinds[it.Record.Key.Kind] {
					keys = append(keys, it.Record.Key)
				}
			}
			if page.Next == "" || page.Next == q.Cursor {
				break
			}
			q.Cursor = page.Next
		}
	}
	return keys
}

func remove(ctx context.Context, s store.Store, k store.Key) {
	r, err := s.Load(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return
	}
	f := store.Fence{Birth: r.Mark.Birth}
	if !k.Kind.Shared() {
		f, _, err = s.Acquire(ctx, k, store.Claim{Owner: "conformance clean-up", Run: uuid.NewString(), Force: true})
		if err != nil {
			return
		}
	}
	_ = s.Delete(ctx, k, f) // best effort: nothing depends on it
}
