package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loophost/loophost/pluginapi"
)

// ErrDocument: the host gave a chain a document that is not the hook point's
// own. It is the host's mistake, never a fault of a hook.
var ErrDocument = errors.New("not the hook point's document")

// Chain holds the hooks of a session in the order in which they run. It never
// changes and may be used by several goroutines at once, as far as its hooks may.
// The zero value has no hooks.
//
//	        ┌────────┐ rewrite  ┌────────┐ rewrite  ┌────────┐
//	doc ──▶ │ hook 1 │ ───────▶ │ hook 2 │ ───────▶ │ hook 3 │ ──▶ Verdict
//	        └────────┘          └────────┘          └────────┘
//	inject, stop: add up, the chain goes on
//	abort, deny, ask: the chain ends, the hooks after it are not called
//	fault: on_error turns it into abort, deny, or a recorded warning
type Chain struct {
	points map[pluginapi.HookPoint][]subscription
}

// subscription is one hook at one point.
type subscription struct {
	hook Hook
	info Info
	decl pluginapi.HookDecl
}

// Env is what the hooks of one run may know and use.
type Env struct {
	Session pluginapi.SessionInfo
	Loop    pluginapi.LoopInfo
	// KV opens a plugin's entries for one call of one of its hooks; nil: no hook
	// gets any. kv may be nil; done may not. The chain calls done exactly once,
	// after the call: keep says that the decision was taken, so what the call put
	// becomes durable with the decision's record; otherwise (a fault, ctx ended)
	// everything that the call put must be forgotten. A later hook of the same
	// chain must see what was kept.
	KV func(plugin string) (kv KV, done func(keep bool))
}

// NewChain orders the subscriptions of hooks: by HookDecl.Order, equal ones as
// in hooks. The error is a *Fault of kind load for the first hook that has no
// valid name, shares its name with another, or has a declaration that breaks the
// contract.
func NewChain(hooks []Hook) (*Chain, error) {
	c := &Chain{points: map[pluginapi.HookPoint][]subscription{}}
	names := map[string]bool{}
	for _, h := range hooks {
		info := h.Info()
		refuse := func(detail string, err error) (*Chain, error) {
			return nil, &Fault{Plugin: info.Name, Digest: info.Digest, Kind: FaultLoad, Detail: detail, Err: err}
		}
		if !pluginapi.ValidPluginName(info.Name) {
			return refuse(fmt.Sprintf("name %q; want 1–64 of a–z, 0–9, '-', '_'", info.Name), nil)
		}
		if names[info.Name] {
			return refuse("two hooks have this name, which the journal and the key-value store need to be unique; rename or remove one", nil)
		}
		names[info.Name] = true
		seen := map[pluginapi.HookPoint]bool{}
		for _, d := range h.Points() {
			if err := d.Validate(); err != nil {
				return refuse("", err)
			}
			if seen[d.Point] {
				return refuse(fmt.Sprintf("it subscribes to %s twice", d.Point), nil)
			}
			seen[d.Point] = true
			if d.OnError == pluginapi.OnErrorDefault {
				d.OnError = pluginapi.DefaultOnError(d.Point, d.Mutates)
			}
			c.points[d.Point] = append(c.points[d.Point], subscription{hook: h, info: info, decl: d})
		}
	}
	for _, subs := range c.points {
		slices.SortStableFunc(subs, func(a, b subscription) int { return cmp.Compare(a.decl.Order, b.decl.Order) })
	}
	return c, nil
}

// Has reports whether a hook is subscribed to point.
func (c *Chain) Has(point pluginapi.HookPoint) bool { return len(c.points[point]) > 0 }

// MayMutate reports whether a hook of point may rewrite its document.
func (c *Chain) MayMutate(point pluginapi.HookPoint) bool {
	for _, s := range c.points[point] {
		if s.decl.Mutates {
			return true
		}
	}
	return false
}

// Run asks the hooks of point, in order, about doc: the point's document as one
// JSON value, which nobody may change afterwards.
//
// The error is not nil in two cases. ctx ended before a hook was asked or while
// it ran: the error is ctx's cause. doc is not the point's document: ErrDocument.
// The verdict then holds the decisions taken until there, with their records, and
// nothing else of it may be acted on. A hook's own deadline, reported as a *Fault
// of kind timeout, is a fault like any other.
//
// At an observer point all hooks run, and the verdict is doc alone.
func (c *Chain) Run(ctx context.Context, env Env, point pluginapi.HookPoint, doc []byte) (Verdict, error) {
	v := Verdict{Document: doc}
	if !c.Has(point) {
		return v, nil
	}
	head, err := inputHead(&pluginapi.HookInput{Point: point, Session: env.Session, Loop: env.Loop, Document: doc})
	if err != nil {
		return v, err
	}
	for _, s := range c.points[point] {
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
		in := &pluginapi.HookInput{Point: point, Session: env.Session, Loop: env.Loop, Document: v.Document}
		if point.Observer() {
			_, _, err := s.ask(ctx, env, in)
			if _, fault := errors.AsType[*Fault](err); err != nil && !fault {
				return v, err
			}
			continue
		}
		hash := inputSHA256(head, in.Document)
		d, stats, err := s.ask(ctx, env, in)
		fault, isFault := errors.AsType[*Fault](err)
		if err != nil && !isFault {
			return v, err
		}
		record := s.record(point, hash, stats)
		if isFault {
			record.Fault = bounded(fault.Error())
			d = pluginapi.Decision{Action: faultAction(s.decl.OnError), Reason: record.Fault}
		} else {
			record.Reason, record.Code = d.Reason, d.Code
		}
		record.Action = d.Action
		v.take(s.info.Name, d, err)
		v.Records = append(v.Records, record)
		if v.End != nil {
			break
		}
	}
	return v, nil
}

// ask calls one hook and checks its answer. The error is a *Fault of the hook,
// or what Run returns.
func (s subscription) ask(ctx context.Context, env Env, in *pluginapi.HookInput) (pluginapi.Decision, CallStats, error) {
	session, taken := Session{Info: env.Session}, false
	if env.KV != nil {
		kv, done := env.KV(s.info.Name)
		session.KV = kv
		defer func() { done(taken) }()
	}
	point, before := in.Point, in.Document
	d, stats, err := s.hook.Run(ctx, session, in)
	if err != nil {
		return pluginapi.Decision{}, stats, s.classify(ctx, err)
	}
	if !point.Observer() {
		err = d.Validate(point, s.decl.Mutates)
		if err == nil && d.Action == pluginapi.Mutate {
			err = checkRewrite(point, before, d.Document)
		}
		if errors.Is(err, ErrDocument) {
			return pluginapi.Decision{}, stats, err
		}
		if err != nil {
			return pluginapi.Decision{}, stats, s.fault(FaultMalformed, err)
		}
	}
	taken = true
	return d, stats, nil
}

// classify tells a fault of the hook from the end of ctx. When both could be,
// only a timeout is certainly the hook's own.
func (s subscription) classify(ctx context.Context, err error) error {
	fault, isFault := errors.AsType[*Fault](err)
	if ctx.Err() != nil && (!isFault || fault.Kind != FaultTimeout) {
		return context.Cause(ctx)
	}
	if isFault {
		return fault
	}
	if failure, ok := errors.AsType[*pluginapi.Failure](err); ok {
		return s.fault(FaultFailure, failure)
	}
	return s.fault(kindOf(err), err)
}

func (s subscription) fault(kind FaultKind, err error) *Fault {
	return &Fault{Plugin: s.info.Name, Digest: s.info.Digest, Kind: kind, Err: err}
}

func (s subscription) record(point pluginapi.HookPoint, hash string, stats CallStats) Record {
	return Record{
		Point: point, Plugin: s.info.Name, Digest: s.info.Digest, InputSHA256: hash,
		DurationUS: stats.Duration.Microseconds(), BytesIn: stats.BytesIn, BytesOut: stats.BytesOut,
		PeakMemory: stats.PeakMemory, Grants: stats.Grants,
	}
}

// faultAction is what a fault comes to under on_error; with allow, nothing but its record.
func faultAction(e pluginapi.OnError) pluginapi.Action {
	switch e {
	case pluginapi.OnErrorAllow:
		return pluginapi.Continue
	case pluginapi.OnErrorDeny:
		return pluginapi.Deny
	}
	return pluginapi.Abort
}
