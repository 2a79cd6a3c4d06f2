package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// withheldResult stands for a tool's text that its rewriting hooks did not see.
const withheldResult = "[withheld: the run ended before the after_tool hooks decided]"

// callState is one tool call of the batch under way.
type callState struct {
	call   pluginapi.ToolCall
	tool   *offeredTool
	result *pluginapi.ToolResult // nil: not known yet
	begun  bool
	done   func(keep bool) // of its key-value entries
}

// guardTools runs the before-tool hooks on every call of the answer, in call
// order, and adds the assistant message, as they rewrote it, to the commit that
// comes before any tool runs (L-9).
func (d *driver) guardTools(ctx context.Context, info pluginapi.LoopInfo) []loop.Event {
	var signals, end []loop.Event
	calls := make([]callState, len(d.round.message.ToolCalls))
	for i, call := range d.round.message.ToolCalls {
		calls[i] = callState{call: call}
		if end != nil {
			if d.chain.MayMutate(pluginapi.BeforeTool) {
				calls[i].call.Arguments = withheldArguments()
			}
			continue
		}
		var s []loop.Event
		if s, end = d.guard(ctx, info, &calls[i]); end == nil {
			signals = append(signals, s...)
		}
	}
	for i := range calls {
		d.round.message.ToolCalls[i] = calls[i].call
	}
	d.round.calls = calls
	if _, err := d.s.append(Entry{Type: EntryMessage, Message: &d.round.message}); err != nil {
		return d.hostFailed(err)
	}
	if end != nil {
		return append(signals, end...)
	}
	return append(signals, loop.Event{Kind: loop.EvToolsGuarded})
}

// guard decides on one call.
func (d *driver) guard(ctx context.Context, info pluginapi.LoopInfo, c *callState) (signals, end []loop.Event) {
	v, signals, end := d.ask(ctx, info, pluginapi.BeforeTool, c.call)
	if v.Mutated {
		var out pluginapi.ToolCall
		if err := json.Unmarshal(v.Document, &out); err != nil {
			return nil, d.hostFailed(err)
		}
		c.call = out
	}
	if (end != nil || v.End != nil) && !d.decidedByAll(pluginapi.BeforeTool, v.Records) {
		c.call.Arguments = withheldArguments()
	}
	if end != nil {
		return signals, end
	}
	switch {
	case v.End != nil && v.End.Action == pluginapi.Ask:
		d.notify(ctx, info, "ask", fmt.Sprintf("hook %s asks about tool %s: %s", v.End.Plugin, c.call.Name, v.End.Reason))
		c.fail(fmt.Sprintf("hook %s wants a person to decide, and nobody is there to answer; denied: %s", v.End.Plugin, v.End.Reason))
	case v.End != nil:
		c.fail(fmt.Sprintf("denied by hook %s: %s", v.End.Plugin, v.End.Reason))
	}
	return signals, nil
}

// withheldArguments stand for those of a call that its rewriting hooks did not
// all decide on: an original that a hook would rewrite is never stored.
func withheldArguments() pluginapi.Raw {
	return pluginapi.Raw(`{"withheld":"the before_tool hooks ended before all of them decided on this call"}`)
}

// decidedByAll reports whether each hook that may rewrite at point took a decision.
func (d *driver) decidedByAll(point pluginapi.HookPoint, records []plugin.Record) bool {
	decided := map[string]bool{}
	for _, r := range records {
		decided[r.Plugin] = r.Fault == ""
	}
	for _, h := range d.spec.Hooks {
		for _, decl := range h.Points() {
			if decl.Point == point && decl.Mutates && !decided[h.Info().Name] {
				return false
			}
		}
	}
	return true
}

func (c *callState) fail(text string) {
	c.result = &pluginapi.ToolResult{CallID: c.call.ID, Name: c.call.Name, Status: pluginapi.ResultError, Text: text}
}

// runTools runs the batch. Calls that only read run side by side; any other
// runs alone, in call order. Each call gets exactly one result, added in call
// order whatever order they finished in (L-9).
func (d *driver) runTools(ctx context.Context, info pluginapi.LoopInfo) []loop.Event {
	calls := d.round.calls
	for i := range calls {
		c := &calls[i]
		if c.result != nil {
			continue
		}
		var problem string
		if c.tool, problem = d.tools.find(c.call); problem != "" {
			c.fail(problem)
		}
	}
	d.runBatch(ctx, calls)

	var signals, end []loop.Event
	mayRewrite := d.chain.MayMutate(pluginapi.AfterTool)
	for i := range calls {
		c := &calls[i]
		switch {
		case c.result == nil:
			status, text := notStarted(c.call)
			if c.begun {
				status, text = unknownEffect(c.call)
			}
			c.result = &pluginapi.ToolResult{CallID: c.call.ID, Name: c.call.Name, Status: status, Text: text}
		case c.begun:
			if end == nil && ctx.Err() == nil {
				var s []loop.Event
				s, end = d.afterTool(ctx, info, c)
				signals = append(signals, s...)
			}
			if mayRewrite && (end != nil || ctx.Err() != nil) {
				c.result.Text = withheldResult // an original that a hook would rewrite is never stored
			}
			if mayRewrite {
				d.tell(Event{Type: EventToolFinished, Result: c.result})
			}
		}
		if c.done != nil {
			c.done(c.result.Status == pluginapi.ResultOK)
		}
		if err := d.addResult(c); err != nil {
			return d.hostFailed(err)
		}
		d.round.results = append(d.round.results, *c.result)
	}
	switch {
	case end != nil:
		return append(signals, end...)
	case ctx.Err() != nil:
		return interrupted
	}
	return append(signals, loop.Event{Kind: loop.EvToolsDone})
}

// addResult adds a call's result to the next commit; one that is too large to be
// stored becomes an error that says so.
func (d *driver) addResult(c *callState) error {
	err := d.addMessage(c)
	if errors.Is(err, store.ErrTooLarge) {
		c.fail(fmt.Sprintf("the tool ran, but its result of %d bytes is too large to be stored", len(c.result.Text)))
		err = d.addMessage(c)
	}
	return err
}

func (d *driver) addMessage(c *callState) error {
	_, err := d.s.append(Entry{Type: EntryMessage, Message: &pluginapi.Message{Role: pluginapi.RoleTool, Result: c.result}})
	return err
}

// runBatch runs the calls that have no result yet.
func (d *driver) runBatch(ctx context.Context, calls []callState) {
	var group sync.WaitGroup
	for i := range calls {
		c := &calls[i]
		if c.result != nil || ctx.Err() != nil {
			continue
		}
		if !c.tool.spec.ReadOnly {
			group.Wait()
		}
		if ctx.Err() != nil || d.s.lease.hold(ctx) != nil {
			break
		}
		c.begun = true
		var session plugin.Session
		session, c.done = d.callSession(c.tool.tool.Info().Name)
		d.tell(Event{Type: EventToolStarted, Call: &c.call})
		work := func() {
			d.runTool(ctx, session, c)
			if c.result != nil && !d.chain.MayMutate(pluginapi.AfterTool) {
				d.tell(Event{Type: EventToolFinished, Result: c.result})
			}
		}
		if c.tool.spec.ReadOnly && len(calls) > 1 {
			group.Go(work)
		} else {
			work()
		}
	}
	group.Wait()
}

// runTool runs one call. It leaves no result where the run is ending and the
// tool did not answer: the effect is unknown then.
func (d *driver) runTool(ctx context.Context, session plugin.Session, c *callState) {
	out, _, err := c.tool.tool.Call(ctx, session, c.call)
	r := &pluginapi.ToolResult{CallID: c.call.ID, Name: c.call.Name}
	fault, isFault := errors.AsType[*plugin.Fault](err)
	switch {
	case err == nil && out.IsError:
		r.Status, r.Text = pluginapi.ResultError, out.Text
	case err == nil:
		r.Status, r.Text = pluginapi.ResultOK, out.Text
	case ctx.Err() != nil:
		return
	case isFault && !c.tool.spec.ReadOnly && fault.Kind != plugin.FaultStart && fault.Kind != plugin.FaultDisabled:
		// It ran and broke in the middle: nobody knows how far it came (L-26).
		r.Status, r.Text = pluginapi.ResultUnknown, fmt.Sprintf("the tool broke while it ran, so whether it had an effect is unknown: %v", err)
	default:
		r.Status, r.Text = pluginapi.ResultError, err.Error()
	}
	r.Text = strings.ToValidUTF8(r.Text, "\uFFFD")
	c.result = r
}

// afterTool runs the after-tool hooks on one result; what they rewrite is stored.
func (d *driver) afterTool(ctx context.Context, info pluginapi.LoopInfo, c *callState) (signals, end []loop.Event) {
	v, signals, end := d.ask(ctx, info, pluginapi.AfterTool, pluginapi.ToolResultDoc{Call: c.call, Result: *c.result})
	if v.Mutated {
		var out pluginapi.ToolResultDoc
		if err := json.Unmarshal(v.Document, &out); err != nil {
			return nil, d.hostFailed(err)
		}
		c.result = &out.Result
	}
	return signals, end
}
