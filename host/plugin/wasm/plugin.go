package wasm

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// Plugin is a loaded module. It is safe for concurrent use.
type Plugin struct {
	r          *Runtime
	info       plugin.Info
	manifest   pluginapi.Manifest
	limits     Limits
	grants     Grants // in force
	grantNames []string
	config     []byte
	code       *compiled

	slots   chan struct{} // one for each call that runs
	closing chan struct{} // closed by Close
	gone    chan struct{} // closed when everything is freed
	running sync.WaitGroup
	booted  atomic.Int64 // instances started so far

	mu        sync.Mutex
	closed    bool
	abandoned int         // given up and still running
	idle      []*instance // the warmest last
	leastIdle int         // the fewest of them since the last look
	looking   bool        // a look is ahead
	look      *time.Timer
	filling   bool // a replacement is being started
	sessions  map[string]*sessionLease
	clock     uint64 // counts session leases, to find the one idle for longest
}

// Manifest is what the plugin says about itself.
func (p *Plugin) Manifest() pluginapi.Manifest { return p.manifest }

// Info names the plugin.
func (p *Plugin) Info() plugin.Info { return p.info }

// Metered reports whether fuel metering bounds the plugin's time; otherwise
// closing on context end does, at several times the cost.
func (p *Plugin) Metered() bool { return p.code.metered }

// Hook is the plugin's hooks; nil: it has none.
func (p *Plugin) Hook() plugin.Hook {
	if !slices.Contains(p.manifest.Kinds, pluginapi.KindHook) {
		return nil
	}
	return hooks{p}
}

// Provider is the plugin as a provider; nil: it is none.
func (p *Plugin) Provider() plugin.Provider {
	if !slices.Contains(p.manifest.Kinds, pluginapi.KindProvider) {
		return nil
	}
	return provider{p}
}

// Tool is the plugin's tools; nil: it has none.
func (p *Plugin) Tool() plugin.Tool {
	if !slices.Contains(p.manifest.Kinds, pluginapi.KindTool) {
		return nil
	}
	return tools{p}
}

// Close ends running calls with ErrClosed and frees everything. It waits until
// the last guest has returned, or until ctx ends; then the rest is freed when
// the guest returns, and ctx's error tells so. A second Close waits as well.
func (p *Plugin) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	var drop []*instance
	if first {
		close(p.closing)
		drop, p.idle = p.idle, nil
		if p.look != nil {
			p.look.Stop()
		}
		for id, l := range p.sessions {
			if l.users == 0 {
				drop = append(drop, l.in)
				delete(p.sessions, id)
			}
		}
	}
	p.mu.Unlock()
	for _, in := range drop {
		if in != nil {
			in.close()
		}
	}
	if first {
		go func() {
			p.running.Wait()
			p.r.forget(p)
			close(p.gone)
		}()
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forget gives back what p holds of the runtime.
func (r *Runtime) forget(p *Plugin) {
	r.mu.Lock()
	delete(r.plugins, p)
	r.mu.Unlock()
	r.release(p.code)
}

// call leases an instance, does o on it and gives it back.
func (p *Plugin) call(ctx context.Context, o *order) (plugin.CallStats, error) {
	begin := time.Now()
	stats := plugin.CallStats{BytesIn: o.input.size, Grants: p.grantNames}
	in, err := p.lease(ctx, o.session.Info.ID, o.limit)
	if err != nil {
		stats.Duration = time.Since(begin)
		return stats, p.named(err)
	}
	lost, keep, err := in.serve(ctx, o, begin)
	if !lost {
		stats.BytesOut, stats.PeakMemory = in.call.written, int64(in.mod.Memory().Size())
	}
	p.giveBack(in, lost, keep)
	stats.Duration = time.Since(begin)
	return stats, p.named(err)
}

// logGuest and logTrap log under no context: the call's may be over.
func (p *Plugin) logGuest(level slog.Level, session, stream, text string) {
	p.r.log.LogAttrs(context.Background(), level, "plugin says", slog.String("plugin", p.info.Name),
		slog.String("session_id", session), slog.String("stream", stream), slog.String("text", text))
}

func (p *Plugin) logTrap(err error) {
	p.r.log.LogAttrs(context.Background(), levelDebug, "guest trapped", slog.String("plugin", p.info.Name),
		attrDigest(p.info.Digest), attrErr(err))
}
