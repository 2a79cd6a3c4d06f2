package wasm

import (
	"time"
)

// watchIdle makes sure that instances which nobody needs go. The warmest serves
// next, so those that a quieter time has no use for gather at the start of p.idle.
// Every so often the fewest that were idle since the last look are known to be too
// many; all but one of them go. p.mu is held.
func (p *Plugin) watchIdle() {
	if p.looking || p.closed || len(p.idle) < 2 {
		return
	}
	p.looking = true
	p.leastIdle = len(p.idle)
	p.look = time.AfterFunc(p.limits.IdleTime, p.lookAtIdle)
}

// lookAtIdle closes what was not needed since the last look.
func (p *Plugin) lookAtIdle() {
	p.mu.Lock()
	p.looking = false
	var drop []*instance
	if spare := min(p.leastIdle, len(p.idle)-1); !p.closed && spare > 0 {
		drop = append(drop, p.idle[:spare]...)
		kept := copy(p.idle, p.idle[spare:])
		clear(p.idle[kept:])
		p.idle = p.idle[:kept]
	}
	p.watchIdle()
	p.mu.Unlock()
	for _, in := range drop {
		in.close()
	}
}
