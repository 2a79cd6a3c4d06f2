package conformance

import (
	"context"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/pluginapi"
)

// checkpointRow is one row of M-1: a run, and which of its checkpoints fails.
type checkpointRow struct {
	name, words string
	k, r        int64
	answer      func(context.Context, int) (pluginapi.Message, error)
	tool        bool
	hook        func() pluginapi.Decision // after every round; nil: none is subscribed
	cancels     bool                      // the run is cancelled during its first provider call

	// at chooses the commit that fails.
	at func(h host.Head, entries []host.Entry) bool
	// failed is how memory ends when it fails.
	failed ending
	// whole is how the run ends when nothing fails, or the failure is resolved.
	whole ending
}

// ending is how a run ends.
type ending struct {
	status   loop.Status
	code     loop.ReasonCode
	runtime  loop.RuntimeStatus
	counts   counts
	calls    int // of the provider
	tools    int // how often the tool ran
	hooks    int // how often the after-round hook ran
	complete int // Complete events
}

func failedAt(c counts, calls, tools, hooks int) ending {
	return ending{loop.Failed, loop.ReasonCheckpoint, loop.RuntimeFailed, c, calls, tools, hooks, 0}
}

func wholeAs(s loop.Status, code loop.ReasonCode, c counts, calls, tools, hooks int) ending {
	return ending{s, code, loop.RuntimeCompleted, c, calls, tools, hooks, 1}
}

// checkpointRows are the rows of M-1, and one for the results of tools.
func checkpointRows() []checkpointRow {
	stopped := wholeAs(loop.Stopped, loop.ReasonHookStop, counts{1, 1, 1}, 1, 0, 1)
	budget := wholeAs(loop.BudgetExhausted, loop.ReasonRounds, counts{1, 0, 1}, 1, 1, 0)
	one := wholeAs(loop.Completed, "", counts{1, 1, 1}, 1, 0, 0)
	two := wholeAs(loop.Completed, "", counts{2, 2, 2}, 2, 0, 0)
	return []checkpointRow{
		{
			name: "stopped-boundary", words: "the boundary of a stopped loop", k: 2, r: 4, answer: direct, hook: stopHere,
			at: atStatus(loop.Stopped, false), failed: failedAt(counts{1, 1, 1}, 1, 0, 1), whole: stopped,
		},
		{
			name: "stopped-mirror", words: "the final mirror of a stopped loop", k: 2, r: 4, answer: direct, hook: stopHere,
			at: atStatus(loop.Stopped, true), failed: failedAt(counts{1, 1, 1}, 1, 0, 1), whole: stopped,
		},
		{
			name: "budget-boundary", words: "the boundary of a loop without rounds left", k: 1, r: 1, answer: asking, tool: true,
			at: atStatus(loop.BudgetExhausted, false), failed: failedAt(counts{1, 0, 1}, 1, 1, 0), whole: budget,
		},
		{
			name: "budget-mirror", words: "the final mirror of a loop without rounds left", k: 1, r: 1, answer: asking, tool: true,
			at: atStatus(loop.BudgetExhausted, true), failed: failedAt(counts{1, 0, 1}, 1, 1, 0), whole: budget,
		},
		{
			name: "completed-mirror", words: "the final mirror of a completed loop", k: 1, r: 1, answer: direct,
			at: atStatus(loop.Completed, true), failed: failedAt(counts{1, 1, 1}, 1, 0, 0), whole: one,
		},
		{
			name: "finalizing-boundary", words: "the boundary of a loop that is complete", k: 1, r: 1, answer: direct,
			at: atStatus(loop.Finalizing, false), failed: failedAt(counts{1, 1, 1}, 1, 0, 0), whole: one,
		},
		{
			name: "start", words: "the start", k: 1, r: 1, answer: direct,
			at: atCheckpoint(loop.CheckpointStart, 0), failed: failedAt(counts{0, 0, 0}, 0, 0, 0), whole: one,
		},
		{
			name: "first-admission", words: "the first admission", k: 1, r: 1, answer: direct,
			at: atCheckpoint(loop.CheckpointAdmission, 1), failed: failedAt(counts{1, 0, 1}, 0, 0, 0), whole: one,
		},
		{
			name: "second-admission", words: "the second iteration's admission", k: 2, r: 4, answer: direct,
			at: atCheckpoint(loop.CheckpointAdmission, 2), failed: failedAt(counts{2, 1, 2}, 1, 0, 0), whole: two,
		},
		{
			name: "before-tools", words: "the checkpoint before tools run", k: 1, r: 2, answer: asksThenAnswers, tool: true,
			at: atCheckpoint(loop.CheckpointTools, 1), failed: failedAt(counts{1, 0, 1}, 1, 0, 0),
			whole: wholeAs(loop.Completed, "", counts{1, 1, 2}, 2, 1, 0),
		},
		{
			name: "tool-results", words: "the end of a round with tool results", k: 1, r: 2, answer: asksThenAnswers, tool: true, hook: goOn,
			at: atCheckpoint(loop.CheckpointRoundEnd, 1), failed: failedAt(counts{1, 0, 1}, 1, 1, 0),
			whole: wholeAs(loop.Completed, "", counts{1, 1, 2}, 2, 1, 2),
		},
		{
			name: "round-end", words: "the end of a round", k: 2, r: 4, answer: direct, hook: goOn,
			at: atCheckpoint(loop.CheckpointRoundEnd, 1), failed: failedAt(counts{1, 1, 1}, 1, 0, 0),
			whole: wholeAs(loop.Completed, "", counts{2, 2, 2}, 2, 0, 2),
		},
		{
			name: "failed-ending", words: "the ending of a failed loop", k: 1, r: 1,
			answer: func(context.Context, int) (pluginapi.Message, error) {
				return pluginapi.Message{}, &pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "no key"}
			},
			at:     atStatus(loop.Failed, false),
			failed: ending{loop.Failed, loop.ReasonProvider, loop.RuntimeFailed, counts{1, 0, 1}, 1, 0, 0, 0},
			whole:  ending{loop.Failed, loop.ReasonProvider, loop.RuntimeFailed, counts{1, 0, 1}, 1, 0, 0, 0},
		},
		{
			name: "cancelled-ending", words: "the ending of a cancelled loop", k: 1, r: 1, answer: direct, cancels: true,
			at:     atStatus(loop.Cancelled, false),
			failed: ending{loop.Cancelled, loop.ReasonOperatorCancel, loop.RuntimeCancelled, counts{1, 0, 1}, 1, 0, 0, 0},
			whole:  ending{loop.Cancelled, loop.ReasonOperatorCancel, loop.RuntimeCancelled, counts{1, 0, 1}, 1, 0, 0, 0},
		},
	}
}

// atStatus chooses the commit of a loop status; mirror: the one beside a completed runtime.
func atStatus(s loop.Status, mirror bool) func(host.Head, []host.Entry) bool {
	return func(h host.Head, _ []host.Entry) bool {
		return h.Loop != nil && h.Loop.Status == s && (h.Runtime.Status == loop.RuntimeCompleted) == mirror
	}
}

// atCheckpoint chooses the commit that records checkpoint c with that many rounds started.
func atCheckpoint(c loop.Checkpoint, rounds uint32) func(host.Head, []host.Entry) bool {
	return func(h host.Head, entries []host.Entry) bool {
		if h.Loop == nil || h.Loop.RoundsStarted != rounds {
			return false
		}
		for _, en := range entries {
			if en.Checkpoint != nil && en.Checkpoint.Name == string(c) {
				return true
			}
		}
		return false
	}
}

// onCommit turns a choice by head and entries into a fault's Match.
func onCommit(at func(host.Head, []host.Entry) bool) func(Call) bool {
	return func(c Call) bool {
		h, err := host.DecodeHead(c.Commit.Head)
		if err != nil {
			return false
		}
		var entries []host.Entry
		for _, raw := range c.Commit.Entries {
			en, err := host.DecodeEntry(raw)
			if err != nil {
				return false
			}
			entries = append(entries, en)
		}
		return at(h, entries)
	}
}
