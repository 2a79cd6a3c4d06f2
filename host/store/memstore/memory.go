package memstore

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
)

// rememberedCommits is how many commit ids a record remembers (S-3).
const rememberedCommits = 4 * store.MinRememberedCommits

// Config says how a Memory works. The zero value is ready to use.
type Config struct {
	// Clock gives the store's time, for births and leases; nil: time.Now.
	Clock func() time.Time
}

// Memory is the shared data. Make one with New.
type Memory struct {
	clock func() time.Time

	mu      sync.Mutex
	records map[store.Key]*record
	graves  map[store.Key]store.Birth // tombstones of deleted records (S-12)
	posted  chan struct{}             // closed and replaced when a signal is posted
}

// record is one record's whole state; guarded by Memory.mu.
type record struct {
	birth    store.Birth
	revision uint64
	chains   []string // chains[i] is the chain at revision i+1
	head     []byte
	entries  []entry
	last     change // what made the newest revision

	lastCommit string
	remembered []remembered // newest last, at most rememberedCommits
	nevers     []string     // ids that Resolve settled as never; newest last, same bound

	fence      store.Fence // zero: unowned
	generation string
	expires    time.Time
	started    time.Time
	released   bool
	signals    []store.Signal // addressed to fence.Run
}

type entry struct {
	revision uint64
	data     []byte
	sum      [sha256.Size]byte
}

type remembered struct {
	id      string
	content [sha256.Size]byte
	ack     store.Ack
}

// change is what Check needs to recompute the newest link of the chain.
type change struct {
	id    string
	never bool
	added int // entries appended
}

// New makes an empty Memory with the zero Config.
func New() *Memory { return NewWith(Config{}) }

// NewWith makes an empty Memory.
func NewWith(c Config) *Memory {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Memory{
		clock:   c.Clock,
		records: map[store.Key]*record{},
		graves:  map[store.Key]store.Birth{},
		posted:  make(chan struct{}),
	}
}

// Open gives an independent handle onto the data. It implements
// store.SignalWatcher and store.Checker too.
func (m *Memory) Open() store.Store {
	return &handle{m: m, done: make(chan struct{})}
}

func (r *record) mark() store.Mark {
	return store.Mark{Birth: r.birth, Revision: r.revision, Chain: r.chains[len(r.chains)-1]}
}

// currentFence is the fence that a writer must hold: of a shared kind the birth alone.
func (r *record) currentFence(k store.Kind) store.Fence {
	if k.Shared() {
		return store.Fence{Birth: r.birth}
	}
	return r.fence
}

// ack is the record's present state as an Ack without signals.
func (r *record) ack() store.Ack {
	return store.Ack{Mark: r.mark(), LogLength: uint64(len(r.entries)), Durability: durability}
}

// apply makes c the newest revision. The caller has checked everything.
func (r *record) apply(c store.Commit) store.Ack {
	before := ""
	if n := len(r.chains); n > 0 {
		before = r.chains[n-1]
	}
	r.revision++
	r.chains = append(r.chains, store.Chain(before, c))
	r.head = copied(c.Head)
	for _, e := range c.Entries {
		r.entries = append(r.entries, entry{revision: r.revision, data: copied(e), sum: sha256.Sum256(e)})
	}
	r.lastCommit = c.ID
	r.last = change{id: c.ID, added: len(c.Entries)}
	ack := r.ack()
	r.remembered = latest(append(r.remembered, remembered{id: c.ID, content: store.ContentHash(c), ack: ack}))
	return ack
}

// never advances the revision so that id can't apply any more (S-4).
func (r *record) never(id string) {
	r.chains = append(r.chains, store.ChainNever(r.chains[len(r.chains)-1], id))
	r.revision++
	r.last = change{id: id, never: true}
	r.nevers = latest(append(r.nevers, id))
}

func (r *record) find(id string) (remembered, bool) {
	for _, m := range r.remembered {
		if m.id == id {
			return m, true
		}
	}
	return remembered{}, false
}

func (r *record) isNever(id string) bool {
	for _, n := range r.nevers {
		if n == id {
			return true
		}
	}
	return false
}

// holds reports whether the record's history holds seen (S-6).
func (r *record) holds(seen store.Mark) bool {
	if seen.Birth != r.birth || seen.Revision > r.revision {
		return false
	}
	return seen.Revision == 0 || seen.Chain == "" || r.chains[seen.Revision-1] == seen.Chain
}

// latest forgets the oldest in one go once there are twice as many as are
// remembered, so that it copies rarely.
func latest[T any](s []T) []T {
	if len(s) < 2*rememberedCommits {
		return s
	}
	return append(make([]T, 0, 2*rememberedCommits), s[len(s)-rememberedCommits:]...)
}

func copied(b []byte) []byte { return append([]byte{}, b...) }
