package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// side says where a kill falls.
type side string

const (
	killBefore side = "before"
	killAfter  side = "after"
	killDuring side = "during" // whenever the kill arrives: nobody waits for it
)

// crashRow is one run of the kill matrix.
type crashRow struct {
	name, words string
	script      crashScript
	// found is the loop that the owner finds in its session; "": there is no session yet.
	found loop.Status
	// How the run ends when nobody kills it.
	status    loop.Status
	runtime   loop.RuntimeStatus
	counts    counts
	recovered bool
	// commits are how many there are at least, Create not counted.
	commits int
}

func crashRows() []crashRow {
	return []crashRow{
		{
			name: "completes", words: "a run that completes three iterations", script: crashScript{Iterations: 3, Rounds: 6},
			status: loop.Completed, runtime: loop.RuntimeCompleted, counts: counts{3, 3, 6}, commits: 16,
		},
		{
			name: "stops", words: "a run that a hook stops", script: crashScript{Iterations: 3, Rounds: 6, StopAfter: 2},
			status: loop.Stopped, runtime: loop.RuntimeCompleted, counts: counts{1, 1, 2}, commits: 7,
		},
		{
			name: "exhausts", words: "a run that spends its rounds", script: crashScript{Iterations: 3, Rounds: 1},
			status: loop.BudgetExhausted, runtime: loop.RuntimeCompleted, counts: counts{1, 0, 1}, commits: 5,
		},
		{
			name: "recovers", words: "a start that finds a loop without an owner, with a tool call under way", script: crashScript{Iterations: 1, Rounds: 2},
			found: loop.Running, status: loop.RecoveryUnsupported, runtime: loop.RuntimeFailed, counts: counts{2, 1, 3}, recovered: true, commits: 1,
		},
		{
			name: "mirrors", words: "a start that finds a stopped loop without its mirror", script: crashScript{Iterations: 1, Rounds: 1},
			found: loop.Stopped, status: loop.BudgetExhausted, runtime: loop.RuntimeCompleted, counts: counts{1, 0, 1}, commits: 6,
		},
	}
}

func crashCases() []Case {
	var out []Case
	for _, row := range crashRows() {
		for _, at := range []side{killBefore, killAfter, killDuring} {
			words := "right " + string(at)
			if at == killDuring {
				words = "about the time of"
			}
			out = append(out, Case{
				ID: "M-5/" + row.name + "/" + string(at), Profile: ProfileCrash, Needs: []Need{NeedSpawn},
				Sentence: fmt.Sprintf("Whichever store call of %s the process is killed %s, the store holds the whole old or the whole new state, and the next start follows L-3.", row.words, words),
				Run:      func(ctx context.Context, e *Env) error { return killMatrix(ctx, e, row, at) },
			})
		}
	}
	return out
}

// killMatrix kills the owner at its first store call, at its second, and so on,
// until a run comes to its end. The cells must be those of a run that nobody kills.
func killMatrix(ctx context.Context, e *Env, row crashRow, at side) error {
	whole, err := killCell(ctx, e, row, at, 0)
	if err != nil {
		return failf("the run that nobody kills: %w", err)
	}
	var cells []string
	var bad []error
	for n := 1; n <= len(whole.calls); n++ {
		want := cellName(whole.calls[:n])
		w, err := killCell(ctx, e, row, at, n)
		switch {
		case err != nil:
			err = failf("killed %s %s: %w", at, want, err)
		case !w.killed:
			err = failf("there is no cell %s %s: the run came to its end", at, want)
		case at != killDuring && w.name(at == killAfter) != want:
			err = failf("want the cell %s %s, got %s", at, want, w.name(at == killAfter))
		default:
			cells = append(cells, want)
		}
		bad = append(bad, err)
	}
	past, err := killCell(ctx, e, row, at, len(whole.calls)+1)
	if err == nil && past.killed {
		err = failf("a call more than those of the run that nobody kills: want an end, got %s", past.name(at == killAfter))
	}
	e.Note("killed %s %d store calls: %s", at, len(cells), strings.Join(cells, " "))
	return errors.Join(append(bad, err)...)
}

// killCell makes one run and what follows it. n is the call at which the owner is
// killed; 0: it is not.
func killCell(ctx context.Context, e *Env, row crashRow, at side, n int) (*witness, error) {
	id := fmt.Sprintf("%s-%s-%d", row.name, at, n)
	session := e.loopSession(id)
	acked := snapshot{absent: true}
	if row.found != "" {
		var err error
		if acked, err = row.seed(ctx, e, id); err != nil {
			return nil, err
		}
	}
	order, during := crashOrder{Script: row.script, Halt: n, After: at == killAfter}, 0
	if at == killDuring {
		order.Halt, during = 0, n
	}
	w, err := killedRun(ctx, e, session, acked, order, during)
	if err == nil && !w.killed {
		err = row.ended(w)
	}
	if err == nil {
		err = afterKill(ctx, e, id, w)
	}
	return w, err
}

// ended checks a run that was not killed.
func (row crashRow) ended(w *witness) error {
	head, err := host.DecodeHead(w.acked.record.Head)
	if err != nil {
		return err
	}
	made := map[Op]int{}
	for _, op := range w.calls {
		made[op]++
	}
	bad := []error{
		wantLoop("the end of the run", head, row.status, row.runtime, row.counts),
		wantEqual("it ends with a RecoveryError ("+w.end.Error+")", w.end.Recovered, row.recovered),
		wantEqual("Complete events", w.count(didComplete), map[bool]int{false: 1}[row.recovered]),
		wantEqual("releases", made[OpRelease], 1),
	}
	if !row.recovered {
		bad = append(bad, wantEqual("the error of the run", w.end.Error, ""), wantEqual("provider calls", w.count(didProvider), int(row.counts.rounds)))
	}
	if row.found == "" {
		bad = append(bad, wantEqual("creates", made[OpCreate], 1))
	}
	if made[OpCommit] < row.commits {
		bad = append(bad, failf("commits: want at least %d, got %d", row.commits, made[OpCommit]))
	}
	return errors.Join(bad...)
}

// seed makes the session as an owner that is gone left it, and gives its state.
func (row crashRow) seed(ctx context.Context, e *Env, id string) (left snapshot, err error) {
	rig, err := e.loop(ctx, id, never)
	if err != nil {
		return left, err
	}
	defer func() { err = errors.Join(err, rig.faulty.Store().Close(), rig.other.Close()) }()
	runtime := loop.RuntimeRunning
	if row.found != loop.Running {
		runtime = loop.RuntimeFinalizing
	}
	found := foundHead(e, row.found, runtime)
	entry := func(m pluginapi.Message) host.Entry {
		return host.Entry{Type: host.EntryMessage, Time: time.Now(), ExecutionID: found.Loop.OwnerExecutionID, Generation: found.Loop.Generation, Message: &m}
	}
	entries := []host.Entry{entry(pluginapi.Message{Role: pluginapi.RoleUser, Text: "prove it"})}
	if row.found == loop.Running {
		entries = append(entries, entry(pluginapi.Message{Role: pluginapi.RoleAssistant, ToolCalls: []pluginapi.ToolCall{
			{ID: "under-way", Name: "work", Arguments: json.RawMessage(`{}`)},
		}}))
	}
	if err := rig.seed(ctx, e, found, entries...); err != nil {
		return left, err
	}
	return look(ctx, rig.other, store.SessionKey(rig.id))
}
