package wasm

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/loophost/loophost/pluginapi"
)

// Config sets up a Runtime. The zero value works: no disk cache, no log, the
// default limits.
type Config struct {
	// CacheDir holds compiled modules between processes. It is created with mode
	// 0700; a wider mode of an existing folder is narrowed, since what lies there is
	// executed. "" keeps compiled code in memory only.
	CacheDir string
	// Logger gets what guests write and what the loader notices; nil: nothing.
	Logger *slog.Logger
	Limits Limits
}

// Limits are the operator's bounds. A zero field takes the default; a manifest
// can lower what it names, never raise it.
type Limits struct {
	ModuleBytes     int           // of a module; default 32 MiB
	MemoryPages     int           // of 64 KiB, of an instance; default 1,024
	OutputBytes     int64         // of a call; default 16 MiB
	HostCalls       int           // of a call; default 1,000
	HookTimeout     time.Duration // default 5 s
	ToolTimeout     time.Duration // default 120 s
	ProviderSilence time.Duration // longest time without a whole chunk; default 120 s
	StartTimeout    time.Duration // start function and _initialize; default 10 s
	CompileTimeout  time.Duration // default 60 s

	// Concurrent bounds the calls of one plugin that run at once, and so its pooled
	// instances; more calls wait, first come first served. Default: 16, or twice
	// GOMAXPROCS where that is more.
	Concurrent int
	// Idle bounds the warm instances that wait for a call. Default: Concurrent.
	Idle int
	// IdleTime is how long warm instances are kept that no call needed, but for one.
	// Default 10 s.
	IdleTime time.Duration
	// Sessions bounds the instances that lease mode "session" keeps; the one idle
	// for longest goes first. Default 64.
	Sessions int
	// RecycleCalls is after how many calls an instance is replaced. Default 10,000.
	RecycleCalls int
	// RecycleMemory is from which memory size, in bytes, an instance is replaced
	// after its call. Default: three quarters of the instance's memory limit.
	RecycleMemory int64
}

const (
	defaultStart      = 10 * time.Second
	defaultConcurrent = 16
	defaultIdleTime   = 10 * time.Second
	defaultSessions   = 64
	defaultRecycle    = 10_000
	// grace is how long a caller waits for a guest that was told to end before the
	// instance is given up. The caller is promised to be free within 50 ms.
	grace = 30 * time.Millisecond
	// maxAbandoned is how many instances that were given up and still run switch the
	// plugin off, for as long as they do.
	maxAbandoned = 2
	pageSize     = 64 << 10
)

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	dur := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.ModuleBytes, pluginapi.MaxModuleBytes)
	def(&l.MemoryPages, pluginapi.MaxMemoryPages)
	l.MemoryPages = min(l.MemoryPages, 1<<16)
	if l.OutputBytes <= 0 {
		l.OutputBytes = pluginapi.MaxOutputBytes
	}
	def(&l.HostCalls, pluginapi.MaxHostCalls)
	dur(&l.HookTimeout, pluginapi.HookTimeoutMS*time.Millisecond)
	dur(&l.ToolTimeout, pluginapi.ToolTimeoutMS*time.Millisecond)
	dur(&l.ProviderSilence, pluginapi.ProviderSilenceMS*time.Millisecond)
	dur(&l.StartTimeout, defaultStart)
	dur(&l.CompileTimeout, pluginapi.MaxCompileSeconds*time.Second)
	def(&l.Concurrent, max(defaultConcurrent, 2*runtime.GOMAXPROCS(0)))
	def(&l.Idle, l.Concurrent)
	dur(&l.IdleTime, defaultIdleTime)
	def(&l.Sessions, defaultSessions)
	def(&l.RecycleCalls, defaultRecycle)
	return l
}

// lowered applies what a manifest asks for below l.
func (l Limits) lowered(m *pluginapi.Limits) Limits {
	if m != nil {
		if m.MemoryPages > 0 {
			l.MemoryPages = min(l.MemoryPages, m.MemoryPages)
		}
		if m.OutputBytes > 0 {
			l.OutputBytes = min(l.OutputBytes, m.OutputBytes)
		}
		if m.TimeoutMS > 0 && m.TimeoutMS < int64(l.longest()/time.Millisecond) {
			t := time.Duration(m.TimeoutMS) * time.Millisecond
			l.HookTimeout = min(l.HookTimeout, t)
			l.ToolTimeout = min(l.ToolTimeout, t)
			l.ProviderSilence = min(l.ProviderSilence, t)
		}
	}
	if l.RecycleMemory <= 0 {
		l.RecycleMemory = int64(l.MemoryPages) * pageSize / 4 * 3
	}
	return l
}

func (l Limits) longest() time.Duration {
	return max(l.HookTimeout, l.ToolTimeout, l.ProviderSilence)
}
