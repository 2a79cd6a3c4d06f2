package wasm

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// instance is one instance of a module. One call uses it at a time.
type instance struct {
	p    *Plugin
	mod  api.Module
	fn   api.Function
	call call
	// memory is what the engine was given; nil: it did not ask yet.
	memory *boundedMemory

	ctx     *guestCtx
	cancel  context.CancelFunc // of a call that is not metered; else nil
	stack   [2]uint64
	work    chan int64 // the size of a call's input; closed to end the guest's goroutine
	done    chan ending
	timer   *time.Timer   // the caller's
	lines   chan []byte   // of a stream, towards the caller
	stopped chan struct{} // closed once the guest is to end; the instance is then of no further use

	served int
	used   *sessionLease // the session that it belongs to; nil: none

	// guarded by call.mu
	finished  bool      // the guest has returned
	abandoned bool      // nobody waits for it; it cleans up itself
	since     time.Time // when it was abandoned
}

// ending is how a guest's goroutine ended.
type ending struct {
	status pluginapi.Status
	err    error
}

// order is what a call asks of an instance.
type order struct {
	op      pluginapi.Op
	input   rope
	limit   time.Duration // of the whole call; of a stream, without a whole chunk
	session plugin.Session
	// chunk, not nil for a stream, takes whole lines as they arrive.
	chunk func(lines []byte) error
	// take decodes the complete output. It must keep nothing of it.
	take func(output []byte) error
}

func newInstance(p *Plugin) *instance {
	in := &instance{p: p, work: make(chan int64, 1), done: make(chan ending, 1), stopped: make(chan struct{}), timer: time.NewTimer(0)}
	in.ctx = &guestCtx{Context: context.Background(), in: in}
	return in
}

// bound makes the guest's context end with the call, where the module isn't metered.
func (in *instance) bound() (release func()) {
	if in.p.code.metered {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	// A new one, since the engine may look at the last call's for a moment longer.
	in.ctx, in.cancel = &guestCtx{Context: ctx, in: in}, cancel
	return cancel
}

// live is the guest's goroutine: it instantiates the module, and then does one call
// after the other. It ends with close, or when nobody waits for it any more. One
// goroutine for all calls saves its stack from growing anew in each.
func (in *instance) live() {
	if !in.finish(ending{err: in.boot()}) {
		return
	}
	for size := range in.work {
		in.stack[0], in.stack[1] = uint64(in.call.op), uint64(size)
		err := in.fn.CallWithStack(in.ctx, in.stack[:])
		if !in.finish(ending{status: pluginapi.Status(uint32(in.stack[0])), err: err}) {
			return
		}
	}
}

// boot instantiates and initializes; both run foreign code.
func (in *instance) boot() error {
	var mod api.Module
	err := survive(func() (err error) {
		mod, err = in.p.code.rt.InstantiateModule(in.withMemory(in.ctx), in.p.code.mod, in.moduleConfig())
		return err
	})
	if err != nil {
		return err
	}
	in.mod = mod
	in.fn = mod.ExportedFunction(pluginapi.ExportCall)
	if init := mod.ExportedFunction(pluginapi.ExportInitialize); init != nil {
		_, err = init.Call(in.ctx)
	}
	return err
}

// finish tells the caller, or cleans up where there is none any more.
func (in *instance) finish(e ending) (more bool) {
	in.call.mu.Lock()
	in.finished = true
	abandoned := in.abandoned
	in.call.mu.Unlock()
	if abandoned {
		in.close()
		in.p.cameBack(time.Since(in.since))
		return false
	}
	in.done <- e
	return true
}

// close frees the instance and ends its goroutine; nothing of it may be running.
func (in *instance) close() {
	close(in.work)
	if in.mod != nil {
		_ = in.mod.Close(context.Background()) // the exit code is not of interest
	}
	if in.memory != nil {
		in.memory.Free() // the engine forgets it when a start function fails
	}
}

// start makes an instance that is ready for calls. Its errors are start faults,
// or ctx's.
func (p *Plugin) start(ctx context.Context, limit time.Duration) (*instance, error) {
	in := newInstance(p)
	o := order{limit: min(limit, p.limits.StartTimeout), take: func([]byte) error { return nil }}
	in.prepare(ctx, &o, time.Now())
	release := in.bound()
	defer release()
	go in.live()
	lost, err := in.await(ctx, &o)
	in.call.end()
	if err == nil {
		return in, nil
	}
	if !lost {
		in.close()
	}
	var b *breach
	if errors.As(err, &b) {
		err = &breach{kind: plugin.FaultStart, detail: string(b.kind) + ": " + b.detail, err: b.err}
	}
	return nil, err
}

// serve does one call. lost: the guest did not end and the instance with it;
// keep: the instance may be used again.
func (in *instance) serve(ctx context.Context, o *order, begin time.Time) (lost, keep bool, err error) {
	if o.input.size > math.MaxInt32 {
		return false, true, malformed("the host's document is larger than 2 GiB", nil)
	}
	in.prepare(ctx, o, begin)
	release := in.bound()
	defer release()
	in.served++
	in.work <- o.input.size
	lost, err = in.await(ctx, o)
	if lost {
		return true, false, err
	}
	in.call.end()
	return false, err == nil || isFailure(err), err
}

// isFailure reports whether err is the plugin's own typed error.
func isFailure(err error) bool {
	var f *pluginapi.Failure
	return errors.As(err, &f)
}

// prepare sets the call's state before the guest runs.
func (in *instance) prepare(ctx context.Context, o *order, begin time.Time) {
	in.finished = false
	c := &in.call
	c.begin(o.op, o.input, in.p.limits)
	c.config, c.session = in.p.config, o.session.Info.ID
	if in.p.grants.KV {
		c.kv = o.session.KV
	}
	c.callerEnd, _ = ctx.Deadline()
	if o.chunk == nil {
		c.deadline = begin.Add(o.limit)
		return
	}
	c.streaming = true
	if in.lines == nil {
		in.lines = make(chan []byte, 16)
	}
}

// await waits for the guest, and takes what it answers. It returns soon after
// ctx or the limit ends, whatever the guest does.
func (in *instance) await(ctx context.Context, o *order) (lost bool, err error) {
	left := o.limit
	if d := in.call.deadline; !d.IsZero() {
		left = time.Until(d)
	}
	in.timer.Reset(left)
	defer in.timer.Stop()
	for {
		select {
		case e := <-in.done:
			return false, in.result(ctx, e, o)
		case lines := <-in.lines:
			if err := o.chunk(lines); err != nil {
				in.stop(nil)
				return in.reap(), err
			}
			in.timer.Reset(o.limit)
		case <-ctx.Done():
			in.stop(nil)
			return in.reap(), ctx.Err()
		case <-in.timer.C:
			if len(in.lines) > 0 {
				in.timer.Reset(0)
				continue
			}
			in.stop(errOverdue)
			return in.reap(), in.overdue(ctx)
		case <-in.p.closing:
			in.stop(nil)
			return in.reap(), ErrClosed
		case <-in.stopped:
			return in.reap(), in.reason(ctx)
		}
	}
}

// reap waits a little for a guest that was stopped, and gives it up then.
func (in *instance) reap() (lost bool) {
	in.timer.Reset(grace)
	select {
	case <-in.done:
		return false
	case <-in.timer.C:
	}
	in.call.mu.Lock()
	if in.finished {
		in.call.mu.Unlock()
		<-in.done
		return false
	}
	in.abandoned, in.since = true, time.Now()
	in.p.abandon()
	in.call.mu.Unlock()
	return true
}

// overdue is the error of a call whose time is over: ours, or its caller's.
func (in *instance) overdue(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return breachf(plugin.FaultTimeout, "it did not answer in time")
}

// reason is why a call was killed.
func (in *instance) reason(ctx context.Context) error {
	in.call.mu.Lock()
	why := in.call.why
	in.call.mu.Unlock()
	switch why {
	case nil: // it was told to end without one
		return ErrClosed
	case errOverdue:
		return in.overdue(ctx)
	}
	return why
}

// result makes the call's outcome of how the guest ended.
func (in *instance) result(ctx context.Context, e ending, o *order) error {
	c := &in.call
	c.mu.Lock()
	dead := c.dead
	c.mu.Unlock()
	if dead {
		return in.reason(ctx)
	}
	if e.err != nil {
		in.p.logTrap(e.err)
		return c.classify(e.err)
	}
	if o.chunk != nil {
		for len(in.lines) > 0 {
			if err := o.chunk(<-in.lines); err != nil {
				return err
			}
		}
	}
	switch e.status {
	case pluginapi.StatusOK:
		if o.chunk != nil && len(c.output) > 0 {
			if err := o.chunk(c.output); err != nil {
				return err
			}
		}
		return o.take(c.output)
	case pluginapi.StatusError:
		return failure(c.failure)
	case pluginapi.StatusUnsupported:
		return breachf(plugin.FaultMalformed, "it does not know the operation %s, which its manifest promises", o.op)
	}
	return breachf(plugin.FaultMalformed, "status %d; known are %d to %d", e.status, pluginapi.StatusOK, pluginapi.StatusUnsupported)
}

// failure decodes an error document: a *pluginapi.Failure, or a breach.
func failure(doc []byte) error {
	var f pluginapi.Failure
	if err := strictjson.Unmarshal(doc, &f); err != nil {
		return malformed("error document", err)
	}
	switch f.Kind {
	case pluginapi.FailAuth, pluginapi.FailInvalidRequest, pluginapi.FailRateLimited, pluginapi.FailOverloaded,
		pluginapi.FailContextOverflow, pluginapi.FailNetwork, pluginapi.FailProtocol, pluginapi.FailEmpty,
		pluginapi.FailTruncated, pluginapi.FailExhausted, pluginapi.FailInternal:
	default:
		return breachf(plugin.FaultMalformed, "error document: unknown kind %q", f.Kind)
	}
	if f.RetryAfterMS < 0 {
		return breachf(plugin.FaultMalformed, "error document: retry_after_ms is %d", f.RetryAfterMS)
	}
	return &f
}
