package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loophost/loophost/pluginapi"
)

// isolationNone: Go code of the embedding program, which nothing holds back.
const isolationNone = "none"

var (
	_ Hook     = FuncHook{}
	_ Provider = FuncProvider{}
	_ Tool     = FuncTool{}
)

// FuncHook is a hook in the embedding program. It has no deadline but ctx's.
type FuncHook struct {
	Name  string // as a plugin's: 1–64 of a–z, 0–9, '-', '_'
	Decls []pluginapi.HookDecl
	// Fn decides. It gets a document of its own. A panic is a fault of kind trap;
	// so is an error that Hook.Run does not know, or timeout where it is a deadline.
	Fn func(ctx context.Context, s Session, in *pluginapi.HookInput) (pluginapi.Decision, error)
}

// Info is the name, without version or digest, and isolation "none".
func (h FuncHook) Info() Info { return Info{Name: h.Name, Isolation: isolationNone} }

// Points is Decls.
func (h FuncHook) Points() []pluginapi.HookDecl { return h.Decls }

// Run calls Fn.
func (h FuncHook) Run(ctx context.Context, s Session, in *pluginapi.HookInput) (d pluginapi.Decision, stats CallStats, err error) {
	own := *in
	own.Document = bytes.Clone(in.Document)
	stats.BytesIn = int64(len(own.Document))
	start := time.Now()
	err = guarded(h.Name, func() (err error) {
		d, err = h.Fn(ctx, s, &own)
		return err
	})
	stats.Duration = time.Since(start)
	if err != nil {
		if !fromContract(ctx, err) {
			err = &Fault{Plugin: h.Name, Kind: kindOf(err), Err: err}
		}
		return pluginapi.Decision{}, stats, err
	}
	stats.BytesOut = int64(len(d.Reason) + len(d.Document) + len(d.Text))
	return d, stats, nil
}

// FuncProvider is a provider in the embedding program. It has no deadline but
// ctx's.
type FuncProvider struct {
	Name string // as a plugin's
	// Fn makes one attempt: see Provider.Complete. A panic is a fault of kind trap;
	// an error that is neither typed, nor emit's, nor ctx's becomes a
	// *pluginapi.Failure of kind internal.
	Fn func(ctx context.Context, s Session, req *Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error)
}

// Info is the name, without version or digest, and isolation "none".
func (p FuncProvider) Info() Info { return Info{Name: p.Name, Isolation: isolationNone} }

// Complete calls Fn.
func (p FuncProvider) Complete(ctx context.Context, s Session, req *Request, emit func(pluginapi.Chunk) error) (result *pluginapi.ProviderResult, err error) {
	var refused error
	err = guarded(p.Name, func() (err error) {
		result, err = p.Fn(ctx, s, req, func(c pluginapi.Chunk) error {
			// A provider can't stream on past a refusal by overlooking it.
			if refused == nil {
				refused = emit(c)
			}
			return refused
		})
		return err
	})
	switch {
	case refused != nil:
		return nil, refused
	case err == nil && result == nil:
		return nil, &pluginapi.Failure{Kind: pluginapi.FailEmpty, Message: "provider " + p.Name + " gave no answer"}
	case err == nil:
		return result, nil
	case fromContract(ctx, err):
		return nil, err
	}
	return nil, &pluginapi.Failure{Kind: pluginapi.FailInternal, Message: err.Error()}
}

// FuncTool is a set of tools in the embedding program. They have no deadline but
// ctx's.
type FuncTool struct {
	Name  string // as a plugin's
	Tools []pluginapi.ToolSpec
	// Fn runs the tool that call names. A panic is a fault of kind trap; an error
	// that is neither typed nor ctx's becomes a *pluginapi.Failure of kind internal.
	Fn func(ctx context.Context, s Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, error)
}

// Info is the name, without version or digest, and isolation "none".
func (t FuncTool) Info() Info { return Info{Name: t.Name, Isolation: isolationNone} }

// Specs is Tools.
func (t FuncTool) Specs() []pluginapi.ToolSpec { return t.Tools }

// Call calls Fn.
func (t FuncTool) Call(ctx context.Context, s Session, call pluginapi.ToolCall) (out pluginapi.ToolOutput, stats CallStats, err error) {
	call.Arguments = bytes.Clone(call.Arguments)
	stats.BytesIn = int64(len(call.Arguments))
	start := time.Now()
	err = guarded(t.Name, func() (err error) {
		out, err = t.Fn(ctx, s, call)
		return err
	})
	stats.Duration = time.Since(start)
	if err != nil {
		if !fromContract(ctx, err) {
			err = &pluginapi.Failure{Kind: pluginapi.FailInternal, Message: err.Error()}
		}
		return pluginapi.ToolOutput{}, stats, err
	}
	stats.BytesOut = int64(len(out.Text))
	return out, stats, nil
}

// guarded turns a panic of fn into a fault of the plugin.
func guarded(name string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			fault := &Fault{Plugin: name, Kind: FaultTrap, Detail: "panic"}
			if cause, ok := r.(error); ok {
				fault.Err = cause
			} else {
				fault.Detail = fmt.Sprintf("panic: %v", r)
			}
			err = fault
		}
	}()
	return fn()
}

// fromContract reports whether err is one that a plugin may answer with: typed, or the end of ctx.
func fromContract(ctx context.Context, err error) bool {
	if _, ok := errors.AsType[*Fault](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pluginapi.Failure](err); ok {
		return true
	}
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}
