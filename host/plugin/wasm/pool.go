package wasm

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// sessionLease is a session's own instance, in lease mode "session".
type sessionLease struct {
	id    string
	turn  chan struct{} // holds a token while a call has the instance
	in    *instance     // nil: none yet, or the last one is gone; used by whoever has the turn
	users int           // calls that have or wait for the turn; guarded by Plugin.mu
	last  uint64        // when it was leased last
	ended bool          // EndSession was called
}

// lease gives an instance for one call: a warm one where there is one, at most
// waiting for limit. giveBack must follow.
func (p *Plugin) lease(ctx context.Context, session string, limit time.Duration) (*instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := p.turn(ctx, p.slots, limit); err != nil {
		p.running.Done()
		return nil, err
	}
	in, err := p.pick(ctx, session, limit, begin)
	if err != nil {
		p.leave()
		return nil, err
	}
	return in, nil
}

// enter counts one more use of the plugin, unless it is closed or off.
func (p *Plugin) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if p.abandoned >= maxAbandoned {
		return breachf(plugin.FaultDisabled, "switched off: %d calls did not end when they were told to and still run; load it again, or do without it", p.abandoned)
	}
	p.running.Add(1)
	return nil
}

// leave is the end of a use that has a slot.
func (p *Plugin) leave() {
	<-p.slots
	p.running.Done()
}

// turn puts a token into c as soon as there is room.
func (p *Plugin) turn(ctx context.Context, c chan<- struct{}, limit time.Duration) error {
	select {
	case c <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closing:
		return ErrClosed
	case <-timer.C:
		return breachf(plugin.FaultTimeout, "all of its instances were busy")
	}
}

// pick finds or starts the instance for a call.
func (p *Plugin) pick(ctx context.Context, session string, limit time.Duration, begin time.Time) (*instance, error) {
	if p.manifest.Lease == pluginapi.LeaseSession {
		return p.pickSession(ctx, session, limit, begin)
	}
	p.mu.Lock()
	in := p.takeIdle()
	p.mu.Unlock()
	if in != nil {
		return in, nil
	}
	return p.start(ctx, limit-time.Since(begin))
}

// takeIdle is the warmest instance, or nil. p.mu is held.
func (p *Plugin) takeIdle() *instance {
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	in := p.idle[n]
	p.idle[n] = nil
	p.idle = p.idle[:n]
	p.leastIdle = min(p.leastIdle, n)
	return in
}

func (p *Plugin) pickSession(ctx context.Context, session string, limit time.Duration, begin time.Time) (*instance, error) {
	p.mu.Lock()
	l := p.sessions[session]
	if l == nil {
		l = &sessionLease{id: session, turn: make(chan struct{}, 1)}
		p.sessions[session] = l
	}
	l.users++
	p.clock++
	l.last = p.clock
	evicted := p.evict()
	// A warm instance that no session has used yet, from Load.
	var spare *instance
	if l.users == 1 && l.in == nil {
		spare = p.takeIdle()
	}
	p.mu.Unlock()
	for _, in := range evicted {
		in.close()
	}
	if err := p.turn(ctx, l.turn, limit-time.Since(begin)); err != nil {
		p.doneWith(l, nil)
		return nil, err
	}
	if l.in == nil {
		l.in = spare
	} else if spare != nil {
		spare.close()
	}
	if l.in == nil {
		in, err := p.start(ctx, limit-time.Since(begin))
		if err != nil {
			<-l.turn
			p.doneWith(l, nil)
			return nil, err
		}
		l.in = in
	}
	l.in.used = l
	return l.in, nil
}

// evict drops the session instances over the bound that are idle for longest. p.mu is held.
func (p *Plugin) evict() (drop []*instance) {
	for len(p.sessions) > p.limits.Sessions {
		var oldest *sessionLease
		for _, l := range p.sessions {
			if l.users == 0 && (oldest == nil || l.last < oldest.last) {
				oldest = l
			}
		}
		if oldest == nil {
			return drop
		}
		delete(p.sessions, oldest.id)
		if oldest.in != nil {
			drop = append(drop, oldest.in)
		}
	}
	return drop
}

// doneWith ends one use of a session's lease; drop is the instance that is not
// kept, nil: the lease keeps what it has.
func (p *Plugin) doneWith(l *sessionLease, drop *instance) {
	p.mu.Lock()
	l.users--
	if l.users == 0 && (l.ended || p.closed || l.in == nil) {
		if p.sessions[l.id] == l {
			delete(p.sessions, l.id)
		}
		if drop == nil {
			drop = l.in
		}
		l.in = nil
	}
	p.mu.Unlock()
	if drop != nil {
		drop.close()
	}
}

// EndSession drops the instance that lease mode "session" keeps for a session;
// a call that is running ends first. Other modes and unknown sessions: nothing.
func (p *Plugin) EndSession(id string) {
	p.mu.Lock()
	l := p.sessions[id]
	if l == nil {
		p.mu.Unlock()
		return
	}
	l.users++
	l.ended = true
	delete(p.sessions, id) // a later call of the same id starts anew
	p.mu.Unlock()
	p.doneWith(l, nil)
}

// giveBack ends a lease. lost: the guest still runs, and cleans up itself.
// keep: the instance may serve again.
func (p *Plugin) giveBack(in *instance, lost, keep bool) {
	keep = keep && !lost && p.manifest.Lease != pluginapi.LeaseFresh &&
		in.served < p.limits.RecycleCalls && int64(in.mod.Memory().Size()) < p.limits.RecycleMemory
	if l := in.used; l != nil {
		var drop *instance
		if !keep {
			l.in = nil
			if !lost {
				drop = in
			}
		}
		<-l.turn
		p.doneWith(l, drop)
	} else {
		p.shelve(in, lost, keep)
	}
	p.leave()
}

// shelve puts an instance with the idle ones, or closes it and starts another in
// its place, so that the next call finds a warm one.
func (p *Plugin) shelve(in *instance, lost, keep bool) {
	p.mu.Lock()
	if keep && !p.closed && len(p.idle) < p.limits.Idle {
		p.idle = append(p.idle, in)
		p.watchIdle()
		p.mu.Unlock()
		return
	}
	fill := !p.closed && !p.filling && len(p.idle) == 0 && p.abandoned < maxAbandoned
	if fill {
		p.filling = true
		p.running.Add(1)
	}
	p.mu.Unlock()
	if fill {
		go p.fill()
	}
	if !lost {
		in.close()
	}
}

// fill starts one warm instance in the background.
func (p *Plugin) fill() {
	defer p.running.Done()
	in, err := p.start(context.Background(), p.limits.StartTimeout)
	p.mu.Lock()
	p.filling = false
	full := p.closed || len(p.idle) >= p.limits.Idle
	if err == nil && !full {
		p.idle = append(p.idle, in)
	}
	p.mu.Unlock()
	switch {
	case err != nil:
		p.r.log.LogAttrs(context.Background(), levelWarn, "no warm instance", attrDigest(p.info.Digest), attrErr(err))
	case full:
		in.close()
	}
}

// abandon counts an instance that did not end; it keeps the plugin's code until it does.
func (p *Plugin) abandon() {
	p.mu.Lock()
	p.abandoned++
	off := p.abandoned == maxAbandoned
	var idle []*instance
	if off {
		idle, p.idle = p.idle, nil
	}
	p.running.Add(1) // its user's count is still held, so this can't race with Wait
	p.mu.Unlock()
	for _, in := range slices.Backward(idle) {
		in.close()
	}
}

// cameBack is the late end of an abandoned instance. From then on it takes nothing
// from anybody, so it does not count any more.
func (p *Plugin) cameBack(late time.Duration) {
	p.mu.Lock()
	p.abandoned--
	p.mu.Unlock()
	p.r.log.LogAttrs(context.Background(), levelWarn, "a call that was given up has ended", slog.String("plugin", p.info.Name),
		attrDigest(p.info.Digest), slog.Duration("late", late))
	p.running.Done()
}
