package child

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/pluginapi"
)

// watchPermit cancels the run when its permit is gone for good: the ticket was
// cancelled or revised, a later attempt took over, or the outcome was given up (T-5).
// A ticket that is blocked may be unblocked: only its tools wait.
func (t *Task) watchPermit(ctx context.Context) {
	state := t.runner.scope.State()
	for {
		if err := state.Permit(t.Worker()); err != nil && !waits(state, t.Assignment()) {
			if cerr := t.session.Cancel(err.Error()); cerr != nil && !errors.Is(cerr, host.ErrNotRunning) {
				t.runner.log.Error("a run without a permit was not asked to stop", "assignment", t.Assignment(), "error", cerr)
			}
			return
		}
		next, err := t.runner.scope.Wait(ctx, state.Seq())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// The store can't be asked: the run's own commits decide whether it goes on.
			t.runner.log.Warn("the permit can't be looked at", "assignment", t.Assignment(), "error", err)
			pause(ctx, time.Second)
		default:
			state = next
		}
	}
}

// waits reports whether the assignment is blocked with its ticket, and nothing else.
func waits(s *ticket.State, assignment string) bool {
	a, ok := s.Assignment(assignment)
	return ok && a.State == ticket.AssignmentBlocked && !a.ProcessStopped
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// permitted is a tool that is called only under the run's permit, as the scope has it
// at that moment (T-5).
type permitted struct {
	plugin.Tool
	t *Task
}

// Call asks for the permit first. Without one, the model is told so.
func (p permitted) Call(ctx context.Context, s plugin.Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, plugin.CallStats, error) {
	state, err := p.t.runner.scope.Refresh(ctx)
	if err == nil {
		err = state.Permit(p.t.Worker())
	}
	if err != nil {
		if ctx.Err() != nil {
			return pluginapi.ToolOutput{}, plugin.CallStats{}, ctx.Err()
		}
		return pluginapi.ToolOutput{}, plugin.CallStats{}, &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: "the tool was not called: " + err.Error()}
	}
	return p.Tool.Call(ctx, s, call)
}

// narrowed is a tool plugin of which only some tools may be used.
type narrowed struct {
	plugin.Tool
	specs []pluginapi.ToolSpec
}

// Specs are those that are allowed.
func (n narrowed) Specs() []pluginapi.ToolSpec { return n.specs }

// allow is the tool with what a contract allows of it; nil: nothing. A contract that
// names no tool allows all that the worker has.
func allow(tool plugin.Tool, names []string) plugin.Tool {
	if len(names) == 0 {
		return tool
	}
	var specs []pluginapi.ToolSpec
	for _, s := range tool.Specs() {
		if slices.Contains(names, s.Name) {
			specs = append(specs, s)
		}
	}
	if len(specs) == 0 {
		return nil
	}
	return narrowed{tool, specs}
}
