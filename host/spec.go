package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
)

// Defaults of a RunSpec.
const (
	DefaultDrainTimeout = 25 * time.Second
	DefaultMaxWait      = 10 * time.Minute
	ProviderAttempts    = 3 // per round (L-18)
)

// RunSpec says what a loop does. Objective, Iterations, Rounds and Provider are required.
type RunSpec struct {
	Objective  string
	Iterations int64 // K, 1 … 100
	Rounds     int64 // R, 1 … 1,000
	// NewLoop starts a new loop in a session whose last loop is recovery_unsupported (L-3).
	NewLoop bool
	// OnceKey, if not "", reports a loop that ended under the same key instead of running again.
	OnceKey string

	Provider  plugin.Provider
	Model     string
	System    string
	MaxTokens uint32 // of one answer; 0: the provider's own
	Options   []byte // JSON object for the provider; nil: none
	Demo      bool   // labels the run as a demonstration
	Hooks     []plugin.Hook
	Tools     []plugin.Tool
	Verifier  Verifier // nil: none

	MaxTokensTotal uint64        // input and output together; 0: no budget
	Timeout        time.Duration // wall time of the run; 0: none
	DrainTimeout   time.Duration // after a stop, before a cancel; 0: DefaultDrainTimeout
	MaxWait        time.Duration // longest wait between provider attempts; 0: DefaultMaxWait
	// Durability every commit must reach; the zero value: what the store promised at open (S-5).
	Durability store.Durability

	// Observer is called for every event, one at a time and in order, on the run's
	// own goroutines: it must return soon and must not call back into the session. nil: none.
	Observer func(Event)
}

// Verifier decides after every iteration whether the goal is met (L-27).
type Verifier interface {
	// Name and Digest go to the journal.
	Name() string
	Digest() string
	// Verify answers whether the goal is met, with a short detail for people. An
	// error means that it could not run; the run fails then.
	Verify(ctx context.Context) (passed bool, detail string, err error)
}

// Validate checks everything that can be checked before anything is touched
// (L-1). The error is a *loop.BoundsError or names the field.
func (s *RunSpec) Validate() error {
	if err := loop.CheckBounds(s.Objective, s.Iterations, s.Rounds); err != nil {
		return err
	}
	switch {
	case s.Provider == nil:
		return errors.New("RunSpec.Provider is nil")
	case s.Timeout < 0 || s.DrainTimeout < 0 || s.MaxWait < 0:
		return errors.New("a duration of RunSpec is negative")
	case len(s.OnceKey) > MaxOnceKeyBytes || !utf8.ValidString(s.OnceKey):
		return fmt.Errorf("the once key has %d bytes; it must be at most %d bytes of valid UTF-8", len(s.OnceKey), MaxOnceKeyBytes)
	}
	if len(s.Options) > 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &object); err != nil || object == nil {
			return errors.New("RunSpec.Options is not a JSON object")
		}
	}
	seen := map[string]string{}
	for _, t := range s.Tools {
		for _, spec := range t.Specs() {
			if other, ok := seen[spec.Name]; ok {
				return fmt.Errorf("tool %q is offered by plugin %s and by plugin %s; leave one out", spec.Name, other, t.Info().Name)
			}
			seen[spec.Name] = t.Info().Name
		}
	}
	return nil
}
