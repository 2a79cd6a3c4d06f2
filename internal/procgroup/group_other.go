//go:build !linux

package procgroup

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// Group is never made here.
type Group struct{}

// Start answers ErrUnsupported.
func Start(*exec.Cmd, string, ...string) (*Group, error) { return nil, ErrUnsupported }

// Identity is empty.
func (*Group) Identity() Identity { return Identity{} }

// Release answers ErrUnsupported.
func (*Group) Release() error { return ErrUnsupported }

// Abandon answers ErrUnsupported.
func (*Group) Abandon() error { return ErrUnsupported }

// Ended is nil: it never comes.
func (*Group) Ended() <-chan struct{} { return nil }

// Signal answers ErrUnsupported.
func (*Group) Signal(syscall.Signal) error { return ErrUnsupported }

// Reap answers ErrUnsupported.
func (*Group) Reap(context.Context) (*os.ProcessState, error) { return nil, ErrUnsupported }

// End answers ErrUnsupported.
func End(context.Context, Identity) error { return ErrUnsupported }

// Alive answers ErrUnsupported.
func Alive(Identity) (bool, error) { return false, ErrUnsupported }

// Self answers ErrUnsupported.
func Self() (Identity, error) { return Identity{}, ErrUnsupported }

// Boot answers ErrUnsupported.
func Boot() (string, error) { return "", ErrUnsupported }
