package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// crashOrder tells an owner's process which run to make, and before or after which
// of its store calls to halt, so that the suite can kill it there (M-5).
type crashOrder struct {
	Script crashScript `json:"script"`
	// Halt is the number of the store call at which the owner halts, from 1; 0: at none.
	Halt  int  `json:"halt"`
	After bool `json:"after"` // halt when the store has answered, not before it is asked
}

// crashScript is a run with tools and hooks, the same every time.
type crashScript struct {
	Iterations int64 `json:"iterations"`
	Rounds     int64 `json:"rounds"`
	// StopAfter is the round after which a hook raises stop; 0: none does.
	StopAfter int `json:"stop_after"`
}

// crashLine is what the owner says; one field is set.
type crashLine struct {
	Sent *crashCall  `json:"sent,omitempty"` // a call is going to the store
	Done *crashReply `json:"done,omitempty"` // the store answered the last one
	Did  string      `json:"did,omitempty"`  // an effect began: didProvider, didComplete, didTool and the call's id
	Halt Op          `json:"halt,omitempty"` // at this call the owner does nothing more until it is killed
	End  *crashEnd   `json:"end,omitempty"`  // the run and the release are over
}

const (
	didProvider = "provider"
	didComplete = "complete"
	didTool     = "tool "
)

// crashCall is a call on its way to the store.
type crashCall struct {
	Op      Op       `json:"op"`
	ID      string   `json:"id,omitempty"` // of create and commit, and so are the next
	Head    []byte   `json:"head,omitempty"`
	Entries [][]byte `json:"entries,omitempty"`
}

// crashReply is the store's answer.
type crashReply struct {
	Error string      `json:"error,omitempty"`
	Mark  store.Mark  `json:"mark"`  // of create, commit and acquire
	Fence store.Fence `json:"fence"` // of acquire
}

// crashEnd is the owner's last line.
type crashEnd struct {
	Error     string `json:"error"`
	Recovered bool   `json:"recovered"` // the error is a *host.RecoveryError
}

// serve makes the run in this process. The error says that the suite is gone, or
// that the session could not be opened.
func (o crashOrder) serve(ctx context.Context, st store.Store, session string, in *bufio.Reader, out io.Writer) error {
	say := &teller{out: json.NewEncoder(out)}
	h, err := host.New(host.Config{Store: newToldStore(st, say, o, in), Owner: "conformance, to be killed", SignalPoll: never})
	if err != nil {
		return err
	}
	s, err := h.Open(ctx, host.OpenRequest{ID: session})
	if err != nil {
		return errors.Join(err, say.err())
	}
	_, err = s.Run(ctx, o.Script.spec(say))
	var end crashEnd
	if err != nil {
		_, end.Recovered = errors.AsType[*host.RecoveryError](err)
		end.Error = err.Error()
	}
	if err := s.Close(ctx); err != nil {
		end.Error += "; close: " + err.Error()
	}
	say.line(crashLine{End: &end})
	return say.err()
}

// spec is the script's run. The plugins tell what they do before they do it.
func (c crashScript) spec(say *teller) host.RunSpec {
	round := 0
	return host.RunSpec{
		Objective: "prove it", Iterations: c.Iterations, Rounds: c.Rounds,
		Provider: &model{answer: func(ctx context.Context, n int) (pluginapi.Message, error) {
			say.line(crashLine{Did: didProvider})
			m, err := asksThenAnswers(ctx, n)
			for _, call := range m.ToolCalls { // a second one, so that a batch can be cut in the middle
				call.ID += "-again"
				m.ToolCalls = append(m.ToolCalls, call)
			}
			return m, err
		}},
		Tools: []plugin.Tool{plugin.FuncTool{
			Name:  "work",
			Tools: []pluginapi.ToolSpec{{Name: "work", Description: "tells of its calls", InputSchema: json.RawMessage(`{"type":"object"}`)}},
			Fn: func(_ context.Context, _ plugin.Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, error) {
				say.line(crashLine{Did: didTool + call.ID})
				return pluginapi.ToolOutput{Text: "done"}, nil
			},
		}},
		Hooks: []plugin.Hook{
			plugin.FuncHook{
				Name: "watch", Decls: []pluginapi.HookDecl{{Point: pluginapi.AfterRound}},
				Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
					round++
					if round == c.StopAfter {
						return stopHere(), nil
					}
					return goOn(), nil
				},
			},
			allowing(pluginapi.BeforeTool, pluginapi.BeforeFinalize),
		},
		Observer: func(ev host.Event) {
			if ev.Type == host.EventComplete {
				say.line(crashLine{Did: didComplete})
			}
		},
	}
}

// allowing is a hook that allows whatever it is asked at points.
func allowing(points ...pluginapi.HookPoint) plugin.Hook {
	h := plugin.FuncHook{Name: "guard", Fn: func(context.Context, plugin.Session, *pluginapi.HookInput) (pluginapi.Decision, error) {
		return pluginapi.Decision{Action: pluginapi.Allow}, nil
	}}
	for _, p := range points {
		h.Decls = append(h.Decls, pluginapi.HookDecl{Point: p})
	}
	return h
}

// teller writes the owner's lines; the first failure stays.
type teller struct {
	mu   sync.Mutex
	out  *json.Encoder
	lost error
}

func (t *teller) line(l crashLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = t.out.Encode(l)
	}
}

func (t *teller) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}
