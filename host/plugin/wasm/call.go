package wasm

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// call is the state of one call, shared by the guest's goroutine, through the
// imports, and the caller. What the caller lent (input, kv) is used under mu and
// only while the call is alive, so that a caller that gave up gets it back.
type call struct {
	mu   sync.Mutex
	dead bool    // the guest is to end: no import does anything any more
	why  *breach // the first limit that was broken

	op        pluginapi.Op
	input     rope
	kv        plugin.KV // nil: not granted
	config    []byte
	session   string    // for the log
	deadline  time.Time // the guest is refused fuel after it; zero: none
	callerEnd time.Time // the caller's deadline, for the guest to know; zero: none
	maxOutput int64
	maxHost   int

	output     []byte // of a stream: the line that is not complete yet
	streaming  bool
	written    int64 // bytes of output so far
	failure    []byte
	reply      []byte
	hostCalls  int
	logged     int
	stderr     []byte // its start, for the fault's text
	stdioBytes int

	memoryRefused bool // written and read on the guest's goroutine, read by the caller after it ended
}

const (
	keptOutput = 64 << 10 // a larger buffer isn't kept for the next call
	// logLineCost is charged for each log line on top of its bytes, so that empty
	// lines aren't free.
	logLineCost = 16
	maxStderr   = 1 << 10
)

// begin readies c for its next call.
func (c *call) begin(op pluginapi.Op, input rope, limits Limits) {
	output, failure := c.output[:0], c.failure[:0]
	if cap(output) > keptOutput {
		output = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.op, c.input, c.output, c.failure = op, input, output, failure
	c.kv, c.config, c.session = nil, nil, ""
	c.deadline, c.callerEnd = time.Time{}, time.Time{}
	c.maxOutput, c.maxHost = limits.OutputBytes, limits.HostCalls
	c.streaming, c.written, c.reply, c.hostCalls = false, 0, nil, 0
	c.logged, c.stderr, c.stdioBytes = 0, c.stderr[:0], 0
	c.memoryRefused = false
}

// end drops what the caller lent.
func (c *call) end() {
	c.mu.Lock()
	c.input, c.kv, c.reply = rope{}, nil, nil
	c.mu.Unlock()
}

// alive takes mu; the caller unlocks. It is false, without the lock, for a call that is over.
func (c *call) alive() bool {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return false
	}
	return true
}

// kill ends the call for the reason b; the first reason stays. mu is held.
func (in *instance) kill(b *breach) {
	c := &in.call
	if c.dead {
		return
	}
	c.dead, c.why = true, b
	c.input, c.kv, c.reply = rope{}, nil, nil
	close(in.stopped)
	if in.cancel != nil {
		in.cancel()
	}
}

// stop is kill for whoever doesn't hold mu. A nil breach leaves the reason to the caller.
func (in *instance) stop(b *breach) {
	in.call.mu.Lock()
	in.kill(b)
	in.call.mu.Unlock()
}

// refuel reports whether the guest may go on.
func (in *instance) refuel(now time.Time) bool {
	c := &in.call
	if !c.alive() {
		return false
	}
	defer c.mu.Unlock()
	if (!c.deadline.IsZero() && now.After(c.deadline)) || (!c.callerEnd.IsZero() && now.After(c.callerEnd)) {
		in.kill(errOverdue)
		return false
	}
	return true
}

// errOverdue: the call's own limit, or its caller's, has passed; the caller tells which.
var errOverdue = &breach{kind: plugin.FaultTimeout}

// write appends to the output. For a stream it returns the whole lines that are
// to be handed on. mu is held.
func (in *instance) write(b []byte) (lines []byte) {
	c := &in.call
	c.written += int64(len(b))
	if c.written > c.maxOutput {
		in.kill(breachf(plugin.FaultOutput, "output over its limit of %d bytes", c.maxOutput))
		return nil
	}
	if !c.streaming {
		c.output = append(c.output, b...)
		return nil
	}
	cut := bytes.LastIndexByte(b, '\n') + 1
	if cut == 0 {
		c.output = append(c.output, b...)
		return nil
	}
	lines = make([]byte, 0, len(c.output)+cut)
	lines = append(append(lines, c.output...), b[:cut]...)
	c.output = append(c.output[:0], b[cut:]...)
	return lines
}

// send hands lines to the caller, waiting while it is busy with earlier ones.
func (in *instance) send(lines []byte) {
	select {
	case in.lines <- lines:
	case <-in.stopped:
	}
}

// charge pays for a log line; false: the budget is spent and the call is over. mu is held.
func (in *instance) charge(n int) bool {
	c := &in.call
	c.logged += n + logLineCost
	if c.logged > pluginapi.MaxLogBytes {
		in.kill(breachf(plugin.FaultOutput, "log over its limit of %d bytes (each line counts %d more)", pluginapi.MaxLogBytes, logLineCost))
		return false
	}
	return true
}

// deadlineMS is what the guest is told: milliseconds left, -1 without a deadline. mu is held.
func (c *call) deadlineMS(now time.Time) int32 {
	end := c.deadline
	if end.IsZero() || (!c.callerEnd.IsZero() && c.callerEnd.Before(end)) {
		end = c.callerEnd
	}
	if end.IsZero() {
		return -1
	}
	left := max(end.Sub(now).Milliseconds(), 0)
	return int32(min(left, 1<<31-1))
}

// stdio takes what the guest writes to stdout or stderr: bounded, cut where it is
// too much, never a fault, since a guest that is dying says so here.
type stdio struct {
	in     *instance
	stream string
}

// Write logs and never fails.
func (w stdio) Write(b []byte) (int, error) {
	c := &w.in.call
	if !c.alive() {
		return len(b), nil
	}
	room := pluginapi.MaxLogBytes - c.stdioBytes
	cut := len(b) > room
	first := cut && room > 0
	part := b
	if cut {
		part = b[:max(room, 0)]
	}
	c.stdioBytes += max(len(b), logLineCost)
	if w.stream == "stderr" && len(c.stderr) < maxStderr {
		c.stderr = append(c.stderr, part[:min(len(part), maxStderr-len(c.stderr))]...)
	}
	session := c.session
	c.mu.Unlock()
	if text := strings.TrimRight(strings.ToValidUTF8(string(part), "�"), "\r\n"); text != "" {
		w.in.p.logGuest(levelInfo, session, w.stream, text)
	}
	if first {
		w.in.p.logGuest(levelWarn, session, w.stream, "(cut: more than 64 KiB in one call)")
	}
	return len(b), nil
}
