package host

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// Lease times (L-28).
const (
	DefaultLeaseTTL   = 30 * time.Second
	DefaultRenewEvery = 10 * time.Second
)

// DefaultSignalPoll is how often an owner looks for signals in a store that can't wake it (S-13).
const DefaultSignalPoll = 500 * time.Millisecond

// DefaultStoreTimeout bounds one store call of a run, so that a store that hangs
// ends the run honestly instead of holding it for ever.
const DefaultStoreTimeout = 60 * time.Second

// Config says what a Host works with. Store is required; every zero value has the meaning given.
type Config struct {
	Store        store.Store
	Owner        string           // names this host to others, at most 256 bytes; "": host name and pid
	Logger       *slog.Logger     // nil: silent
	LeaseTTL     time.Duration    // 0: DefaultLeaseTTL
	RenewEvery   time.Duration    // below LeaseTTL; 0: a third of it
	SignalPoll   time.Duration    // 0: DefaultSignalPoll
	StoreTimeout time.Duration    // 0: DefaultStoreTimeout
	Clock        func() time.Time // wall clock of entries and events; nil: time.Now
	NewID        func() string    // mints UUIDs for executions and commits; nil: random (v4)
}

// Host runs sessions over one store. It is safe for many goroutines.
type Host struct {
	cfg Config
}

// New checks cfg and makes a Host. It touches nothing.
func New(cfg Config) (*Host, error) {
	if cfg.Store == nil {
		return nil, errors.New("host: Config.Store is nil; open a store first")
	}
	if len(cfg.Owner) > 256 {
		return nil, fmt.Errorf("host: Config.Owner has %d bytes; at most 256 are allowed", len(cfg.Owner))
	}
	if cfg.LeaseTTL < 0 || cfg.RenewEvery < 0 || cfg.SignalPoll < 0 || cfg.StoreTimeout < 0 {
		return nil, errors.New("host: a duration of Config is negative")
	}
	if cfg.Owner == "" {
		name, err := os.Hostname()
		if err != nil {
			name = "localhost"
		}
		cfg.Owner = fmt.Sprintf("%.200s:%d", name, os.Getpid())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.LeaseTTL == 0 {
		cfg.LeaseTTL = DefaultLeaseTTL
	}
	if cfg.RenewEvery == 0 {
		cfg.RenewEvery = cfg.LeaseTTL / 3
	}
	if cfg.RenewEvery <= 0 || cfg.RenewEvery >= cfg.LeaseTTL {
		return nil, fmt.Errorf("host: Config.RenewEvery is %v; it must be below the lease's %v, or no effect may start (L-28)", cfg.RenewEvery, cfg.LeaseTTL)
	}
	if cfg.SignalPoll == 0 {
		cfg.SignalPoll = DefaultSignalPoll
	}
	if cfg.StoreTimeout == 0 {
		cfg.StoreTimeout = DefaultStoreTimeout
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = uuid.NewString
	}
	return &Host{cfg: cfg}, nil
}

// Store is the store the host works on.
func (h *Host) Store() store.Store { return h.cfg.Store }

func (h *Host) now() time.Time { return h.cfg.Clock().UTC() }
