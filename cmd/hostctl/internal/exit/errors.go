package exit

import (
	"errors"
	"fmt"
	"strings"
)

// UsageError says that the command was called wrongly. Nothing was written.
type UsageError struct {
	Text string // what, where, and what to do next
	Err  error  // cause; may be nil
}

// Error is the text.
func (e *UsageError) Error() string { return e.Text }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &UsageError{Text: err.Error(), Err: errors.Unwrap(err)}
}

// PluginError says that a plugin could not be loaded. No session was touched.
type PluginError struct {
	Plugin string // as it was named
	Err    error
}

// Error names the plugin and the cause.
func (e *PluginError) Error() string {
	return fmt.Sprintf("plugin %s can't be loaded: %v", e.Plugin, e.Err)
}

// Unwrap gives the cause.
func (e *PluginError) Unwrap() error { return e.Err }

// NotApprovedError refuses what a project's file asks for and nobody on this
// machine approved. Nothing was started.
type NotApprovedError struct {
	File  string   // the project's file
	Wants []string // what it asks for, as flags of run: "--hook ./guard.wasm"
}

// Error says what is asked for and how to approve it.
func (e *NotApprovedError) Error() string {
	return fmt.Sprintf("%s asks for what is not approved on this machine: %s; to approve it for one run, say it on the command line: %s",
		e.File, strings.Join(e.Wants, ", "), strings.Join(e.Wants, " "))
}

// ErrInterrupted is the cause of a context that a signal ended before a run was under way.
var ErrInterrupted = errors.New("interrupted by a signal")

// CheckError says that a check ran and found damage or failures; the findings are printed already.
type CheckError struct {
	Text    string
	Damaged bool // stored data is damaged, as opposed to a failed conformance case
}

// Error is the text.
func (e *CheckError) Error() string { return e.Text }
