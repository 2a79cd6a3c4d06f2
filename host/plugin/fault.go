package plugin

import (
	"context"
	"errors"
	"fmt"
)

// ErrKVLimit: a key, a value or the number of entries is over its bound.
var ErrKVLimit = errors.New("key-value limit exceeded")

// FaultKind classes what went wrong inside a plugin.
type FaultKind string

// The kinds of faults.
const (
	FaultLoad      FaultKind = "load"       // the module or manifest is unusable
	FaultStart     FaultKind = "start"      // it could not start; apart from one that denied
	FaultTrap      FaultKind = "trap"       // trap, panic, exit
	FaultTimeout   FaultKind = "timeout"    // past its deadline
	FaultMemory    FaultKind = "memory"     // past its memory limit
	FaultOutput    FaultKind = "output"     // output over its limit
	FaultHostCalls FaultKind = "host_calls" // too many host calls
	FaultMalformed FaultKind = "malformed"  // an answer that breaks the contract
	FaultCrash     FaultKind = "crash"      // its process is gone
	FaultDisabled  FaultKind = "disabled"   // switched off after too many faults
	FaultFailure   FaultKind = "failure"    // a hook answered with its own typed error instead of a decision
)

// Fault says that a plugin broke its contract. It is told apart from a
// plugin's own typed error, a *pluginapi.Failure.
type Fault struct {
	Plugin string
	Digest string
	Kind   FaultKind
	Detail string // what was found and what to do, without secrets
	Err    error  // cause; may be nil
}

// Error renders plugin, kind, detail and cause on one line.
func (f *Fault) Error() string {
	s := fmt.Sprintf("plugin %s: %s", f.Plugin, f.Kind)
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	if f.Err != nil {
		s += ": " + f.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// kindOf classes an error that the contract does not know.
func kindOf(err error) FaultKind {
	if errors.Is(err, context.DeadlineExceeded) {
		return FaultTimeout
	}
	return FaultTrap
}
