package memstore

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
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
	queues  map[string]*queue
}

// record is one record's whole state; guarded by Memory.mu.
type record struct {
	state   ledger.State
	chains  []string // chains[i] is the chain at revision i+1
	head    []byte
	entries []entry
	last    change // what made the newest revision

	settled map[string]ledger.Settled // by commit id (S-3)
	order   []string                  // the keys of settled, oldest first
}

type entry struct {
	revision uint64
	data     []byte
	sum      [sha256.Size]byte
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
		queues:  map[string]*queue{},
	}
}

// Open gives an independent handle onto the data. It implements
// store.SignalWatcher, store.Checker and store.Queue too.
func (m *Memory) Open() store.Store {
	e := &engine{m: m, done: make(chan struct{})}
	return &handle{Store: ledger.Over(e, durability, m.clock), engine: e}
}

// settle keeps what became of a commit, which made the newest revision.
func (r *record) settle(c ledger.Change) {
	r.chains = append(r.chains, c.State.Mark.Chain)
	r.last = change{id: c.ID, never: c.Settled.Never, added: len(c.Entries)}
	if c.Applied {
		r.head = copied(c.Head)
	}
	for _, e := range c.Entries {
		r.entries = append(r.entries, entry{revision: c.State.Mark.Revision, data: copied(e), sum: sha256.Sum256(e)})
	}
	r.settled[c.ID] = *c.Settled
	r.order = append(r.order, c.ID)
	// The oldest are forgotten many at a time, so that the table is copied rarely.
	if len(r.order) == 2*rememberedCommits {
		for _, old := range r.order[:rememberedCommits] {
			delete(r.settled, old)
		}
		r.order = append([]string{}, r.order[rememberedCommits:]...)
	}
}

func copied(b []byte) []byte { return append([]byte{}, b...) }
