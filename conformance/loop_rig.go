package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// inLoop is a case of the loop profile that needs no special ability.
func inLoop(id, sentence string, run func(context.Context, *Env) error) Case {
	return Case{ID: id, Sentence: sentence, Profile: ProfileLoop, Run: run}
}

// never is a poll interval that no case outlives: what a host learns then, it
// learns from its commits, or because the store woke it.
const never = time.Hour

// loopRig is a host on a handle of its own, which can be made to fail, beside
// another handle onto the same data, through which the case looks.
type loopRig struct {
	faulty *Faulty
	other  store.Store
	host   *host.Host
	id     string

	mu     sync.Mutex
	events []host.Event
}

// loopSession registers the session id as this case's own and names it.
func (e *Env) loopSession(id string) string {
	k := store.SessionKey(e.name + "-" + id)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys[k] = true
	return k.ID
}

// loop makes a rig for the session id. poll is how often its owner looks for signals.
func (e *Env) loop(ctx context.Context, id string, poll time.Duration) (*loopRig, error) {
	own, other, err := e.Open2(ctx)
	if err != nil {
		return nil, err
	}
	r := &loopRig{faulty: NewFaulty(own), other: other, id: e.loopSession(id)}
	r.host, err = host.New(host.Config{Store: r.faulty.Store(), Owner: "conformance", SignalPoll: poll})
	return r, err
}

// second is a rig for the same session on two more handles.
func (e *Env) second(ctx context.Context, first *loopRig) (*loopRig, error) {
	own, other, err := e.Open2(ctx)
	if err != nil {
		return nil, err
	}
	r := &loopRig{faulty: NewFaulty(own), other: other, id: first.id}
	r.host, err = host.New(host.Config{Store: r.faulty.Store(), Owner: "conformance, the second", SignalPoll: never})
	return r, err
}

func (r *loopRig) key() store.Key { return store.SessionKey(r.id) }

func (r *loopRig) observe(ev host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

// count is how many events of a type the rig's runs emitted.
func (r *loopRig) count(t host.EventType) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, ev := range r.events {
		if ev.Type == t {
			n++
		}
	}
	return n
}

// open opens the session; done closes it again.
func (r *loopRig) open(ctx context.Context) (s *host.Session, done func(), err error) {
	s, err = r.host.Open(ctx, host.OpenRequest{ID: r.id})
	if err != nil {
		return nil, nil, failf("open the session: %w", err)
	}
	return s, func() { _ = s.Close(context.WithoutCancel(ctx)) }, nil // the clean-up takes what stays
}

// tryOpen says whether the session can be opened; it does not keep it.
func (r *loopRig) tryOpen(ctx context.Context) error {
	s, err := r.host.Open(ctx, host.OpenRequest{ID: r.id})
	if err != nil {
		return err
	}
	return s.Close(ctx)
}

// stored is the session's head as the other handle reads it.
func (r *loopRig) stored(ctx context.Context) (host.Head, error) {
	rec, err := r.other.Load(ctx, r.key())
	if err != nil {
		return host.Head{}, failf("load the session: %w", err)
	}
	return host.DecodeHead(rec.Head)
}

// seed creates the session as an owner that is gone left it.
func (r *loopRig) seed(ctx context.Context, e *Env, head host.Head, entries ...host.Entry) error {
	data, err := head.Encode()
	if err != nil {
		return err
	}
	c := store.Commit{ID: e.UUID(), Head: data}
	for _, en := range entries {
		raw, err := en.Encode()
		if err != nil {
			return err
		}
		c.Entries = append(c.Entries, raw)
	}
	if _, err := r.other.Create(ctx, r.key(), c); err != nil {
		return failf("create the session: %w", err)
	}
	return nil
}

// model is a provider that counts its calls and answers by their number, from 1.
type model struct {
	mu     sync.Mutex
	calls  int
	answer func(ctx context.Context, n int) (pluginapi.Message, error)
}

var _ plugin.Provider = (*model)(nil)

// Info implements plugin.Provider.
func (m *model) Info() plugin.Info { return plugin.Info{Name: "conformance", Isolation: "none"} }

// Complete implements plugin.Provider.
func (m *model) Complete(ctx context.Context, _ plugin.Session, _ *plugin.Request, _ func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
	m.mu.Lock()
	m.calls++
	n := m.calls
	m.mu.Unlock()
	msg, err := m.answer(ctx, n)
	if err != nil {
		return nil, err
	}
	return &pluginapi.ProviderResult{Message: msg, Finish: pluginapi.FinishStop}, nil
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// direct answers every call with a text of its own and no tool calls.
func direct(_ context.Context, n int) (pluginapi.Message, error) {
	return pluginapi.Message{Text: fmt.Sprintf("answer %d", n)}, nil
}

// asking asks for a tool in every answer.
func asking(_ context.Context, n int) (pluginapi.Message, error) {
	return pluginapi.Message{Text: fmt.Sprintf("answer %d", n), ToolCalls: []pluginapi.ToolCall{
		{ID: fmt.Sprintf("call-%d", n), Name: "work", Arguments: json.RawMessage(`{}`)},
	}}, nil
}

// asksThenAnswers asks for a tool in every odd answer.
func asksThenAnswers(ctx context.Context, n int) (pluginapi.Message, error) {
	if n%2 == 1 {
		return asking(ctx, n)
	}
	return direct(ctx, n)
}

// counter counts what a plugin was called for.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// workTool is the tool that asking asks for. do may be nil.
func workTool(ran *counter, do func(ctx context.Context) error) plugin.Tool {
	return plugin.FuncTool{
		Name:  "work",
		Tools: []pluginapi.ToolSpec{{Name: "work", Description: "counts its calls", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		Fn: func(ctx context.Context, _ plugin.Session, _ pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
			ran.add()
			if do != nil {
				if err := do(ctx); err != nil {
					return pluginapi.ToolOutput{}, err
				}
			}
			return pluginapi.ToolOutput{Text: "done"}, nil
		},
	}
}

// afterRound is a hook of that point that counts its calls and decides as decide says.
func afterRound(ran *counter, decide func() pluginapi.Decision) plugin.Hook {
	return plugin.FuncHook{
		Name: "watch", Decls: []pluginapi.HookDecl{{Point: pluginapi.AfterRound}},
		Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
			ran.add()
			return decide(), nil
		},
	}
}

func goOn() pluginapi.Decision { return pluginapi.Decision{Action: pluginapi.Continue} }

func stopHere() pluginapi.Decision {
	return pluginapi.Decision{Action: pluginapi.Stop, Reason: "enough"}
}

// spec is a loop of k iterations and at most rounds rounds over m.
func (r *loopRig) spec(m *model, k, rounds int64) host.RunSpec {
	return host.RunSpec{Objective: "prove it", Iterations: k, Rounds: rounds, Provider: m, Observer: r.observe}
}

// counts are the counters of a loop.
type counts struct{ started, completed, rounds uint32 }

func countsOf(l *loop.State) counts {
	if l == nil {
		return counts{}
	}
	return counts{l.IterationsStarted, l.IterationsCompleted, l.RoundsStarted}
}

// wantLoop compares a head's loop and runtime with what they must be.
func wantLoop(what string, h host.Head, status loop.Status, runtime loop.RuntimeStatus, c counts) error {
	if h.Loop == nil {
		return failf("%s: want a loop that is %s, got none", what, status)
	}
	return errors.Join(
		wantEqual(what+": loop status", h.Loop.Status, status),
		wantEqual(what+": runtime status", h.Runtime.Status, runtime),
		wantEqual(what+": counters (started, completed, rounds)", countsOf(h.Loop), c),
	)
}

// wantSameLoop compares the loop and runtime of two heads, the revision too.
func wantSameLoop(what string, got, want host.Head) error {
	if got.Loop == nil || want.Loop == nil {
		return wantEqual(what+": has no loop", got.Loop == nil, want.Loop == nil)
	}
	return errors.Join(
		wantEqual(what+": loop", *got.Loop, *want.Loop),
		wantEqual(what+": runtime", got.Runtime, want.Runtime),
	)
}

// wantStored checks that the store holds the loop and runtime of want.
func (r *loopRig) wantStored(ctx context.Context, what string, want host.Head) error {
	got, err := r.stored(ctx)
	if err != nil {
		return failf("%s: %w", what, err)
	}
	return wantSameLoop(what, got, want)
}

// wantText checks that err says each of texts, in any case.
func wantText(what string, err error, texts ...string) error {
	if err == nil {
		return failf("%s: want an error that says %q, got success", what, texts)
	}
	for _, t := range texts {
		if !strings.Contains(strings.ToLower(err.Error()), t) {
			return failf("%s: want an error that says %q, got %w", what, t, err)
		}
	}
	return nil
}

// entries reads the session's whole log.
func (r *loopRig) entries(ctx context.Context) ([]host.Entry, error) {
	raw, err := readAll(ctx, r.other, r.key())
	if err != nil {
		return nil, err
	}
	out := make([]host.Entry, 0, len(raw))
	for _, en := range raw {
		x, err := host.DecodeEntry(en.Data)
		if err != nil {
			return nil, failf("entry %d: %w", en.Seq, err)
		}
		out = append(out, x)
	}
	return out, nil
}

// messages are the messages of the session's log.
func (r *loopRig) messages(ctx context.Context) ([]pluginapi.Message, error) {
	entries, err := r.entries(ctx)
	var out []pluginapi.Message
	for _, en := range entries {
		if en.Message != nil {
			out = append(out, *en.Message)
		}
	}
	return out, err
}

// wantOnceEach checks that nothing in the log is there twice, and that every
// tool call has exactly one result (L-9).
func (r *loopRig) wantOnceEach(ctx context.Context) error {
	entries, err := r.entries(ctx)
	if err != nil {
		return err
	}
	seen := map[string]int{}
	calls, results := map[string]int{}, map[string]int{}
	for _, en := range entries {
		switch en.Type {
		case host.EntryStarted:
			seen["the start of generation "+en.Generation]++
		case host.EntryIteration:
			seen[fmt.Sprintf("iteration %d of generation %s", en.Iteration, en.Generation)]++
		case host.EntryRound:
			seen[fmt.Sprintf("round %d of generation %s", en.Round, en.Generation)]++
		case host.EntryMessage:
			if m := en.Message; m.Role == pluginapi.RoleAssistant {
				seen[fmt.Sprintf("the message %q of generation %s", m.Text, en.Generation)]++
				for _, c := range m.ToolCalls {
					calls[c.ID]++
				}
			} else if m.Result != nil {
				results[m.Result.CallID]++
			}
		}
	}
	var bad []error
	for what, n := range seen {
		if n != 1 {
			bad = append(bad, failf("%s: want it once in the log, got it %d times", what, n))
		}
	}
	for id, n := range calls {
		bad = append(bad, wantEqual("results of call "+id, results[id], n))
	}
	for id := range results {
		if calls[id] == 0 {
			bad = append(bad, failf("a result for call %s, which no message asks for", id))
		}
	}
	return errors.Join(bad...)
}
