package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
	benchmark "github.com/loophost/loophost/internal/bench"
	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/plugins/bundled"
)

const benchAnswer = "an answer of the usual length, or somewhat less than what a model would say about it"

// benched is what a measured loop works with.
type benched struct {
	provider plugin.Provider
	hook     plugin.Hook
}

func (w benched) spec(hooks, rounds int) host.RunSpec {
	spec := host.RunSpec{Objective: "do it", Iterations: int64(rounds), Rounds: int64(rounds), Provider: w.provider}
	if hooks > 0 {
		spec.Hooks = []plugin.Hook{w.hook}
	}
	return spec
}

// native costs nothing.
var native = benched{
	provider: plugin.FuncProvider{Name: "native", Fn: func(context.Context, plugin.Session, *plugin.Request, func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
		return &pluginapi.ProviderResult{Message: say(benchAnswer), Finish: pluginapi.FinishStop}, nil
	}},
	hook: hook("native-hook", pluginapi.AfterRound, func(*pluginapi.HookInput) pluginapi.Decision {
		return pluginapi.Decision{Action: pluginapi.Continue}
	}),
}

// loadPlugins loads the bundled scripted provider and the after-round hook.
func loadPlugins(b *testing.B) benched {
	b.Helper()
	r, err := wasm.New(b.Context(), wasm.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	load := func(name, config string) *wasm.Plugin {
		module, err := bundled.Module(name)
		if err != nil {
			b.Fatal(err)
		}
		p, err := r.Load(b.Context(), wasm.Module{Wasm: module, Config: json.RawMessage(config), Grants: wasm.Grants{KV: true, Clock: true}})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	script := fmt.Sprintf(`{"script":{"steps":[{"text":%q}],"repeat":true}}`, benchAnswer)
	return benched{provider: load("scripted", script).Provider(), hook: load("stop-when", `{"pattern":"never said"}`).Hook()}
}

// benchRig is a host over one store.
type benchRig struct {
	b    *testing.B
	host *host.Host
}

// counting counts what a store is asked to commit.
type counting struct {
	store.Store
	commits, bytes *atomic.Int64
}

func (c counting) Commit(ctx context.Context, k store.Key, f store.Fence, commit store.Commit) (store.Ack, error) {
	c.commits.Add(1)
	n := len(commit.Head)
	for _, e := range commit.Entries {
		n += len(e)
	}
	c.bytes.Add(int64(n))
	return c.Store.Commit(ctx, k, f, commit)
}

func (r *benchRig) hostOver(s store.Store) *host.Host {
	r.b.Helper()
	h, err := host.New(host.Config{Store: s, Owner: "bench"})
	if err != nil {
		r.b.Fatal(err)
	}
	return h
}

func newBenchRig(b *testing.B, backend string) *benchRig {
	b.Helper()
	var st store.Store = memstore.New().Open()
	if backend == "fs" {
		onDisk, err := fs.Open(fs.Config{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		st = onDisk
	}
	b.Cleanup(func() {
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	r := &benchRig{b: b}
	r.host = r.hostOver(st)
	return r
}

// perRound counts the commits of one round, and the bytes of one commit.
func perRound(b *testing.B, spec host.RunSpec) (commits float64, size int) {
	b.Helper()
	st := memstore.New().Open()
	defer st.Close()
	c := counting{Store: st, commits: new(atomic.Int64), bytes: new(atomic.Int64)}
	r := &benchRig{b: b}
	r.host = r.hostOver(c)
	l := r.loops("count", spec, 1)
	if err := errors.Join(l.open(), l.run(0), l.close()); err != nil {
		b.Fatal(err)
	}
	n := c.commits.Load()
	return float64(n) / float64(spec.Rounds), int(c.bytes.Load() / n)
}

// loops runs one loop in each of several sessions at once.
type loops struct {
	r    *benchRig
	name string
	spec host.RunSpec
	same bool // each turn in the same sessions; else in new ones
	turn int
	all  []*host.Session
}

func (r *benchRig) loops(name string, spec host.RunSpec, sessions int) *loops {
	l := &loops{r: r, name: name, spec: spec, all: make([]*host.Session, sessions)}
	r.b.Cleanup(func() {
		if err := l.close(); err != nil {
			r.b.Error(err)
		}
	})
	return l
}

func (l *loops) close() error {
	var errs []error
	for i, s := range l.all {
		if s != nil {
			errs = append(errs, s.Close(context.Background()))
		}
		l.all[i] = nil
	}
	return errors.Join(errs...)
}

// open closes the last turn's sessions and opens those of the next one.
func (l *loops) open() error {
	if err := l.close(); err != nil {
		return err
	}
	for i := range l.all {
		id := fmt.Sprintf("%s-%d", l.name, i)
		if !l.same {
			id = fmt.Sprintf("%s-%d", id, l.turn)
		}
		var err error
		if l.all[i], err = l.r.host.Open(l.r.b.Context(), host.OpenRequest{ID: id}); err != nil {
			return err
		}
	}
	l.turn++
	return nil
}

// run runs the loops to their end. It is a benchmark.Side whose steps are the rounds
// of all of them, whatever it is asked for. Each run needs an open before it.
func (l *loops) run(int) error {
	var group errgroup.Group
	for _, s := range l.all {
		group.Go(func() error {
			res, err := s.Run(l.r.b.Context(), l.spec)
			if err == nil && (res.Status != loop.Completed || int64(res.RoundsStarted) != l.spec.Rounds) {
				err = fmt.Errorf("the loop ended as %s after %d rounds", res.Status, res.RoundsStarted)
			}
			return err
		})
	}
	return group.Wait()
}

// appends is the floor of n sessions: each step appends size bytes to a file, with
// one fdatasync.
func appends(b *testing.B, n, size int) benchmark.Side {
	b.Helper()
	dir := b.TempDir()
	data := bytes.Repeat([]byte("x"), size)
	each := make([]benchmark.Side, n)
	for i := range each {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(i)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = f.Close() })
		each[i] = func(steps int) error {
			for range steps {
				if _, err := f.Write(data); err != nil {
					return err
				}
				if err := unix.Fdatasync(int(f.Fd())); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return benchmark.Workers(each)
}
