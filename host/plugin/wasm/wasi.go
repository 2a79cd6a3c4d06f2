package wasm

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// workspaceMount is where a granted workspace lies for the guest.
const workspaceMount = "/workspace"

// moduleConfig is an instance's view of the system: nothing but what is granted.
func (in *instance) moduleConfig() wazero.ModuleConfig {
	g := in.p.grants
	cfg := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions(). // _initialize is called under a deadline
		WithStdout(stdio{in, "stdout"}).
		WithStderr(stdio{in, "stderr"}).
		WithOsyield(func() {})
	if g.Clock {
		cfg = cfg.WithSysWalltime().WithSysNanotime().WithNanosleep(in.sleep)
	} else {
		c := &stillClock{}
		cfg = cfg.WithWalltime(c.wall, sys.ClockResolution(1000)).WithNanotime(c.mono, sys.ClockResolution(1000)).WithNanosleep(c.sleep)
	}
	var source io.Reader = rand.Reader
	if !g.Random {
		source = mathrand.NewChaCha8(sha256.Sum256([]byte(in.p.info.Digest)))
	}
	cfg = cfg.WithRandSource(entropy{in, source})
	if g.Workspace != nil {
		fs := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(&rootFS{in: in, root: g.Workspace}, workspaceMount)
		cfg = cfg.WithFSConfig(fs)
	}
	return cfg
}

// stillClock is the clock of a guest without one: it starts at the same moment in
// every instance, and moves only when the guest sleeps or looks at it, so that
// sleeping takes no time and waiting for the clock ends.
type stillClock struct{ passed int64 } // nanoseconds; used on the guest's goroutine

const (
	stillStart = 1_600_000_000 // seconds since 1970: a plausible time for certificate checks and the like
	stillTick  = 1_000         // nanoseconds a look
)

func (c *stillClock) wall() (sec int64, nsec int32) {
	c.passed += stillTick
	return stillStart + c.passed/1e9, int32(c.passed % 1e9)
}

func (c *stillClock) mono() int64 {
	c.passed += stillTick
	return c.passed
}

func (c *stillClock) sleep(ns int64) {
	// A guest may ask for centuries; stop before the sum overflows.
	if ns > 0 && ns < 1<<62-c.passed {
		c.passed += ns
	}
}

// sleep is real and ends with the call.
func (in *instance) sleep(ns int64) {
	if ns <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-in.stopped:
	}
}

var errOver = errors.New("the call is over")

// entropy stops giving when the call is over, since a guest can ask for all of its memory at once.
type entropy struct {
	in *instance
	r  io.Reader
}

// Read fills b, in pieces.
func (e entropy) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		if !e.in.call.alive() {
			return n, errOver
		}
		e.in.call.mu.Unlock()
		m, err := e.r.Read(b[n:min(len(b), n+pageSize)])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
