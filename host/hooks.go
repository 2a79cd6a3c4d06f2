package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// ask runs the hooks of a point about doc, journals what they decided, and says
// what it means for the loop: signals are the events to send first, end (if any)
// ends the effect with them.
func (d *driver) ask(ctx context.Context, info pluginapi.LoopInfo, point pluginapi.HookPoint, doc any) (v plugin.Verdict, signals, end []loop.Event) {
	if !d.chain.Has(point) {
		return plugin.Verdict{}, nil, nil
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return v, nil, d.hostFailed(err)
	}
	v, err = d.chain.Run(ctx, d.env(info), point, data)
	if d.s.lease.ended() != nil {
		return v, nil, []loop.Event{{Kind: loop.EvFenced}}
	}
	if jerr := d.journal(v); jerr != nil {
		return v, nil, d.hostFailed(jerr)
	}
	if err != nil {
		if ctx.Err() != nil {
			return v, nil, interrupted
		}
		return v, nil, d.hostFailed(err)
	}
	signals, end = d.rule(v)
	return v, signals, end
}

// rule turns a verdict into events. A deny or ask is the caller's to interpret,
// except of a prompt or provider call, where a deny fails the run.
func (d *driver) rule(v plugin.Verdict) (signals, end []loop.Event) {
	if v.Stop != nil {
		code := loop.ReasonHookStop
		if v.Stop.Code == pluginapi.CodeNoProgress {
			code = loop.ReasonNoProgress
		}
		signals = []loop.Event{{Kind: loop.EvStop, Code: code, Reason: fmt.Sprintf("hook %s: %s", v.Stop.Plugin, v.Stop.Reason)}}
	}
	if v.End != nil && v.End.Action == pluginapi.Abort {
		if v.End.Fault != nil {
			d.cause = v.End.Fault
		}
		end = append(slices.Clone(signals), loop.Event{Kind: loop.EvHookAborted, Reason: fmt.Sprintf("hook %s aborted the run: %s", v.End.Plugin, v.End.Reason)})
	}
	return signals, end
}

// denied ends an admission that a hook refused.
func (d *driver) denied(point pluginapi.HookPoint, r *plugin.Ruling) []loop.Event {
	if r.Fault != nil {
		d.cause = r.Fault
	}
	return []loop.Event{{Kind: loop.EvHookDenied, Reason: fmt.Sprintf("hook %s denied at %s: %s", r.Plugin, point, r.Reason)}}
}

// prepare runs the before-hooks of an admission (L-7).
func (d *driver) prepare(ctx context.Context, info pluginapi.LoopInfo, newIteration bool) []loop.Event {
	var signals []loop.Event
	d.request = nil
	if !d.prompt.started {
		d.prompt.started = true
		_, s, end := d.ask(ctx, info, pluginapi.SessionStart, pluginapi.StartDoc{Objective: d.m.State().Objective, Messages: uint64(len(d.s.conv.messages))})
		if end != nil {
			return end
		}
		signals = append(signals, s...)
	}
	if newIteration {
		s, end := d.askPrompt(ctx, info)
		if end != nil {
			return append(signals, end...)
		}
		signals = append(signals, s...)
	}
	round := pluginapi.RoundDoc{Iteration: info.IterationsStarted, Round: info.RoundsStarted + 1}
	if newIteration {
		round.Iteration++
	}
	_, s, end := d.ask(ctx, info, pluginapi.BeforeRound, round)
	if end != nil {
		return append(signals, end...)
	}
	signals = append(signals, s...)
	s, end = d.askProvider(ctx, info, round, newIteration)
	if end != nil {
		return append(signals, end...)
	}
	return append(append(signals, s...), loop.Event{Kind: loop.EvPrepared})
}

// askPrompt decides what the iteration's prompt is.
func (d *driver) askPrompt(ctx context.Context, info pluginapi.LoopInfo) (signals, end []loop.Event) {
	v := d.prompt.verdict
	if d.prompt.ran {
		d.prompt.ran = false // it decided ahead of the start, and is journaled
		signals, end = d.rule(v)
	} else {
		d.prompt.text = d.m.State().Objective
		v, signals, end = d.ask(ctx, info, pluginapi.BeforePrompt, pluginapi.PromptDoc{Text: d.prompt.text})
		if end == nil && v.Mutated {
			var out pluginapi.PromptDoc
			if err := json.Unmarshal(v.Document, &out); err != nil {
				return nil, d.hostFailed(err)
			}
			d.prompt.text = out.Text
		}
	}
	if end == nil && v.End != nil {
		end = d.denied(pluginapi.BeforePrompt, v.End)
	}
	return signals, end
}

// askProvider shows the request that would be sent; a rewrite of it is sent instead.
func (d *driver) askProvider(ctx context.Context, info pluginapi.LoopInfo, round pluginapi.RoundDoc, newIteration bool) (signals, end []loop.Event) {
	if !d.chain.Has(pluginapi.BeforeProvider) {
		return nil, nil
	}
	req := d.baseRequest()
	req.Call = pluginapi.CallInfo{Ordinal: d.ordinal + 1, Iteration: round.Iteration, Round: round.Round, Attempt: 1}
	req.Messages = append(slices.Clone(d.s.conv.messages), d.injected...)
	if newIteration {
		req.Messages = append(req.Messages, pluginapi.Message{Role: pluginapi.RoleUser, Text: d.prompt.text})
	}
	v, signals, end := d.ask(ctx, info, pluginapi.BeforeProvider, req)
	switch {
	case end != nil:
		return signals, end
	case v.End != nil:
		return signals, d.denied(pluginapi.BeforeProvider, v.End)
	case v.Mutated:
		var out pluginapi.ProviderRequest
		if err := json.Unmarshal(v.Document, &out); err != nil {
			return signals, d.hostFailed(err)
		}
		for _, in := range v.Injected { // of the same chain: the rewrite does not know them
			out.Messages = append(out.Messages, injection(in))
		}
		d.request = &out
	}
	return signals, nil
}

// review runs the after-round hooks on what is already durable (L-11).
func (d *driver) review(ctx context.Context, info pluginapi.LoopInfo) []loop.Event {
	doc := pluginapi.RoundEndDoc{
		Iteration: info.IterationsStarted, Round: info.RoundsStarted, Complete: len(d.round.message.ToolCalls) == 0,
		Message: d.round.message, Results: d.round.results,
	}
	if doc.Results == nil {
		doc.Results = []pluginapi.ToolResult{}
	}
	_, signals, end := d.ask(ctx, info, pluginapi.AfterRound, doc)
	if end != nil {
		return end
	}
	return append(signals, loop.Event{Kind: loop.EvReviewed})
}

// finalize runs the before-finalize hooks. Any fault of one fails the run (L-13).
func (d *driver) finalize(ctx context.Context, info pluginapi.LoopInfo) []loop.Event {
	v, signals, end := d.ask(ctx, info, pluginapi.BeforeFinalize, pluginapi.FinalizeDoc{FinalText: d.finalText, Denies: d.m.Denies()})
	if end != nil {
		return end
	}
	for _, r := range v.Records {
		if r.Fault != "" {
			return append(signals, loop.Event{Kind: loop.EvHookAborted, Reason: fmt.Sprintf("hook %s failed at before_finalize: %s", r.Plugin, r.Fault)})
		}
	}
	if v.End != nil {
		return append(signals, loop.Event{Kind: loop.EvFinalizeDenied, Reason: v.End.Reason})
	}
	return append(signals, loop.Event{Kind: loop.EvFinalizePassed})
}

// verify runs the verifier and journals its verdict like a hook's (L-27).
func (d *driver) verify(ctx context.Context) []loop.Event {
	v := d.spec.Verifier
	started := d.s.host.now()
	passed, detail, err := v.Verify(ctx)
	if ctx.Err() != nil {
		return interrupted
	}
	record := &plugin.Record{
		Point: "verify", Plugin: v.Name(), Digest: v.Digest(), Action: pluginapi.Continue, Reason: detail,
		DurationUS: d.s.host.now().Sub(started).Microseconds(),
	}
	if passed {
		record.Action = pluginapi.Stop
	}
	if err != nil {
		record.Fault = err.Error()
	}
	if _, jerr := d.s.append(Entry{Type: EntryHook, Hook: record}); jerr != nil {
		return d.hostFailed(jerr)
	}
	if err != nil {
		d.cause = err
		return []loop.Event{{Kind: loop.EvVerifierFailed, Reason: fmt.Sprintf("the verifier could not run: %v", err)}}
	}
	return []loop.Event{{Kind: loop.EvVerified, Passed: passed, Reason: detail}}
}

// notify tells the notification hooks; they only watch.
func (d *driver) notify(ctx context.Context, info pluginapi.LoopInfo, kind, text string) {
	d.observe(ctx, info, pluginapi.Notification, pluginapi.NotificationDoc{Kind: kind, Text: text})
}

// observeEnd tells the session_end hooks how the loop ended.
func (d *driver) observeEnd(ctx context.Context) {
	if d.m.Fenced() {
		return // the session is another owner's; so are its effects
	}
	if !d.s.lease.good() {
		d.s.host.cfg.Logger.Warn("session_end hooks did not run: the lease could not be renewed", "session_id", d.s.ID(), "generation", d.s.Generation())
		return // nobody is left who could cut a wait for it short (L-28)
	}
	state := d.m.State()
	d.observe(context.WithoutCancel(ctx), d.loopInfo(), pluginapi.SessionEnd,
		pluginapi.EndDoc{Status: string(state.Status), ReasonCode: string(state.ReasonCode), Reason: state.Reason})
}

// observe runs the hooks of an observer point; nothing they do changes the run,
// and what they put into their key-value entries is forgotten.
func (d *driver) observe(ctx context.Context, info pluginapi.LoopInfo, point pluginapi.HookPoint, doc any) {
	if !d.chain.Has(point) {
		return
	}
	data, err := json.Marshal(doc)
	if err == nil {
		env := d.env(info)
		env.KV = func(name string) (plugin.KV, func(bool)) { return d.s.conv.stage(name), func(bool) {} }
		_, err = d.chain.Run(ctx, env, point, data)
	}
	if err != nil {
		d.s.host.cfg.Logger.Warn("observer hooks did not run", "session_id", d.s.ID(), "point", string(point), "error", err)
	}
}
