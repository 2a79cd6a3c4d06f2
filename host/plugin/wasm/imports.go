package wasm

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm/meter"
	"github.com/loophost/loophost/pluginapi"
)

// instanceKey finds the instance in the context that a guest runs with.
type instanceKey struct{}

// guestCtx is that context. It ends with the call only where the module isn't metered.
type guestCtx struct {
	context.Context
	in *instance
}

// Value is the instance, or what the parent has.
func (g *guestCtx) Value(key any) any {
	if _, ok := key.(instanceKey); ok {
		return g.in
	}
	return g.Context.Value(key)
}

func instanceOf(ctx context.Context) *instance {
	in, _ := ctx.Value(instanceKey{}).(*instance)
	return in
}

// instantiateHost adds the host modules: lh1, and the meter's.
func instantiateHost(ctx context.Context, rt wazero.Runtime) error {
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	b := rt.NewHostModuleBuilder(pluginapi.ImportModule)
	for _, f := range []struct {
		name    string
		fn      func(*instance, api.Memory, []uint64)
		params  int
		results int
	}{
		{pluginapi.ImportInputRead, inputRead, 3, 1},
		{pluginapi.ImportOutputWrite, outputWrite, 2, 0},
		{pluginapi.ImportErrorWrite, errorWrite, 2, 0},
		{pluginapi.ImportLog, guestLog, 3, 0},
		{pluginapi.ImportHostCall, hostCall, 3, 1},
		{pluginapi.ImportReplyRead, replyRead, 3, 1},
		{pluginapi.ImportDeadline, deadlineMS, 0, 1},
	} {
		types := []api.ValueType{i32, i32, i32}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			f.fn(instanceOf(ctx), mod.Memory(), stack)
		}), types[:f.params], types[:f.results]).Export(f.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %s: %w", pluginapi.ImportModule, err)
	}
	refill := api.GoFunc(func(ctx context.Context, stack []uint64) {
		if instanceOf(ctx).refuel(time.Now()) {
			stack[0] = api.EncodeI64(meter.Quantum)
		} else {
			stack[0] = api.EncodeI64(meter.Refuse)
		}
	})
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoFunction(refill, []api.ValueType{i64}, []api.ValueType{i64}).
		Export(meter.ImportName).Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("host module %s: %w", meter.ImportModule, err)
	}
	return nil
}

// guestRange is the guest's memory at ptr, not copied. A range that isn't there
// ends the call. mu is held.
func (in *instance) guestRange(what string, mem api.Memory, ptr, n uint64) ([]byte, bool) {
	b, ok := mem.Read(uint32(ptr), uint32(n))
	if !ok {
		in.kill(breachf(plugin.FaultTrap, "%s: the range of %d bytes at %d is not within its memory of %d bytes", what, uint32(n), uint32(ptr), mem.Size()))
	}
	return b, ok
}

func inputRead(in *instance, mem api.Memory, stack []uint64) {
	ptr, n, off := stack[0], stack[1], uint32(stack[2])
	stack[0] = 0
	c := &in.call
	if !c.alive() {
		return
	}
	defer c.mu.Unlock()
	if dst, ok := in.guestRange(pluginapi.ImportInputRead, mem, ptr, n); ok {
		stack[0] = uint64(uint32(c.input.readAt(dst, int64(off))))
	}
}

func outputWrite(in *instance, mem api.Memory, stack []uint64) {
	c := &in.call
	if !c.alive() {
		return
	}
	var lines []byte
	if src, ok := in.guestRange(pluginapi.ImportOutputWrite, mem, stack[0], stack[1]); ok {
		lines = in.write(src)
	}
	c.mu.Unlock()
	if len(lines) > 0 {
		in.send(lines)
	}
}

func errorWrite(in *instance, mem api.Memory, stack []uint64) {
	c := &in.call
	if !c.alive() {
		return
	}
	defer c.mu.Unlock()
	src, ok := in.guestRange(pluginapi.ImportErrorWrite, mem, stack[0], stack[1])
	if !ok {
		return
	}
	if len(c.failure)+len(src) > pluginapi.MaxErrorBytes {
		in.kill(breachf(plugin.FaultOutput, "error document over its limit of %d bytes", pluginapi.MaxErrorBytes))
		return
	}
	c.failure = append(c.failure, src...)
}

func guestLog(in *instance, mem api.Memory, stack []uint64) {
	c := &in.call
	if !c.alive() {
		return
	}
	src, ok := in.guestRange(pluginapi.ImportLog, mem, stack[1], stack[2])
	ok = ok && in.charge(len(src))
	var text string
	if ok {
		text = strings.ToValidUTF8(string(src), "�")
	}
	session := c.session
	c.mu.Unlock()
	if !ok {
		return
	}
	level := slog.LevelError
	switch int32(uint32(stack[0])) {
	case pluginapi.LogDebug:
		level = slog.LevelDebug
	case pluginapi.LogInfo:
		level = slog.LevelInfo
	case pluginapi.LogWarn:
		level = slog.LevelWarn
	}
	in.p.logGuest(level, session, "log", text)
}

func replyRead(in *instance, mem api.Memory, stack []uint64) {
	ptr, n, off := stack[0], stack[1], uint32(stack[2])
	stack[0] = 0
	c := &in.call
	if !c.alive() {
		return
	}
	defer c.mu.Unlock()
	dst, ok := in.guestRange(pluginapi.ImportReplyRead, mem, ptr, n)
	if ok && uint64(off) < uint64(len(c.reply)) {
		stack[0] = uint64(uint32(copy(dst, c.reply[off:])))
	}
}

func deadlineMS(in *instance, _ api.Memory, stack []uint64) {
	c := &in.call
	if !c.alive() {
		stack[0] = 0
		return
	}
	defer c.mu.Unlock()
	stack[0] = uint64(uint32(c.deadlineMS(time.Now())))
}

func hostCall(in *instance, mem api.Memory, stack []uint64) {
	op, ptr, n := pluginapi.HostOp(uint32(stack[0])), stack[1], stack[2]
	denied := int32(pluginapi.HostDenied)
	stack[0] = uint64(uint32(denied))
	c := &in.call
	if !c.alive() {
		return
	}
	defer c.mu.Unlock()
	c.reply = nil
	req, ok := in.guestRange(pluginapi.ImportHostCall, mem, ptr, n)
	if !ok {
		return
	}
	if c.hostCalls++; c.hostCalls > c.maxHost {
		in.kill(breachf(plugin.FaultHostCalls, "more than %d host calls in one call", c.maxHost))
		return
	}
	reply, status := c.answer(op, req)
	if status == 0 && len(reply) > math.MaxInt32 {
		status = pluginapi.HostTooLarge
	}
	if status != 0 {
		stack[0] = uint64(uint32(status))
		return
	}
	c.reply = reply
	stack[0] = uint64(uint32(len(reply)))
}
