package view_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/view"
	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// story is a run with everything that a screen has to show.
func story() []host.Event {
	at := func(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC) }
	call := pluginapi.ToolCall{ID: "c1", Name: "read_file", Arguments: pluginapi.Raw(`{"path":"a.txt"}`)}
	result := pluginapi.ToolResult{CallID: "c1", Name: "read_file", Status: pluginapi.ResultOK, Text: "line one\nline two\x1b[2J"}
	denied := pluginapi.ToolResult{CallID: "c2", Name: "write_file", Status: pluginapi.ResultError, Text: "denied by tool-guard"}
	ask := pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "I will look.", ToolCalls: []pluginapi.ToolCall{call}}
	return []host.Event{
		{Type: host.EventStarted, Started: &host.StartedInfo{MaxIterations: 2, MaxTotalRounds: 20}},
		{Type: host.EventIterationStarted, Iteration: 1},
		{Type: host.EventRoundStarted, Round: 1},
		{Type: host.EventMessage, Message: &pluginapi.Message{Role: pluginapi.RoleUser, Text: "the objective"}},
		{Type: host.EventRetryScheduled, Retry: &host.Retry{Attempt: 1, WaitMS: 1500, Until: time.Date(2026, 1, 2, 3, 4, 7, 0, time.Local), Error: "overloaded:\nbusy"}},
		{Type: host.EventToken, Token: &host.Token{Text: "thinking", Reasoning: true}},
		{Type: host.EventToken, Token: &host.Token{Text: "I will"}},
		{Type: host.EventToken, Token: &host.Token{Text: " look."}},
		{Type: host.EventMessage, Message: &ask},
		{Type: host.EventHook, Hook: &plugin.Record{Point: pluginapi.BeforeTool, Plugin: "quiet", Action: pluginapi.Continue}},
		{Type: host.EventToolStarted, Call: &call, Time: at(0)},
		{Type: host.EventToolFinished, Result: &result, Time: at(12)},
		{Type: host.EventMessage, Message: &pluginapi.Message{Role: pluginapi.RoleTool, Result: &result}},
		{Type: host.EventHook, Hook: &plugin.Record{Point: pluginapi.BeforeTool, Plugin: "tool-guard", Action: pluginapi.Deny, Reason: "not yours"}},
		{Type: host.EventMessage, Message: &pluginapi.Message{Role: pluginapi.RoleTool, Result: &denied}},
		{Type: host.EventRoundStarted, Round: 2},
		{Type: host.EventMessage, Message: &pluginapi.Message{Role: pluginapi.RoleUser, Origin: "hook:nudge", Text: "hurry up"}},
		{Type: host.EventMessage, Message: &pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "Two lines:\nthe answer.\n"}},
		{Type: host.EventHook, Hook: &plugin.Record{Point: pluginapi.AfterRound, Plugin: "broken", Action: pluginapi.Continue, Fault: "timeout: 5s are over"}},
		{Type: host.EventStopRequested, Reason: "enough"},
		{Type: host.EventComplete, Ending: &host.Ending{Status: loop.Stopped}},
	}
}

func TestScreens(t *testing.T) {
	in, out := uint64(7), uint64(3)
	stopped := host.Result{
		SessionID: "s", Status: loop.Stopped, ReasonCode: loop.ReasonOperatorStop, Reason: "enough",
		IterationsStarted: 1, IterationsCompleted: 1, RoundsStarted: 2, Usage: &pluginapi.Usage{InputTokens: &in, OutputTokens: &out},
	}
	failed := &host.FailedError{Session: "s", Code: loop.ReasonProvider, Reason: "auth: no key"}
	cases := []struct {
		name    string
		options view.Options
		err     error
	}{
		{"plain", view.Options{}, nil},
		{"terminal", view.Options{Live: true, Width: 80}, nil},
		{"terminal_colour_demo", view.Options{Live: true, Color: true, Demo: true, Width: 80}, nil},
		{"plain_failed", view.Options{}, failed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			c.options.Out = &b
			text := view.NewText(c.options)
			text.Fact("session", "s")
			for _, ev := range story() {
				if ev.Started != nil {
					ev.Started.Demo = c.options.Demo
				}
				text.Event(ev)
			}
			text.End(stopped, exit.Of(stopped, c.err, exit.Hints{}), 90*time.Second, exit.Hints{})
			golden(t, c.name+".golden", b.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s\nif that is right: go test -run TestScreens -update", name, got, want)
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name           string
		text           string
		terminal, demo bool
		want           string
	}{
		{"a pipe gets the bytes and one line end", "a\x1b[0m\nb", false, false, "a\x1b[0m\nb\n"},
		{"a line end is not doubled", "a\n", false, false, "a\n"},
		{"a terminal gets it made safe", "a\x1b[0m", true, false, "a␛[0m\n"},
		{"a demo is labelled on every line", "a\nb", false, true, "[demo] a\n[demo] b\n"},
		{"no answer is nothing", "", false, true, ""},
	} {
		var b bytes.Buffer
		if err := view.Answer(&b, c.text, c.terminal, c.demo); err != nil || b.String() != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, b.String(), err, c.want)
		}
	}
	broken, w := io.Pipe()
	broken.CloseWithError(errors.New("gone"))
	if err := view.Answer(w, "a", false, false); err == nil {
		t.Error("a failed write is no error")
	}
}

func TestQueueNeverHoldsUpTheRun(t *testing.T) {
	release := make(chan struct{})
	var mu sync.Mutex
	var got []uint32
	q := view.NewQueue(func(ev host.Event) {
		<-release
		mu.Lock()
		defer mu.Unlock()
		got = append(got, ev.Round)
	})
	const n = 10_000
	for i := range uint32(n) {
		q.Put(host.Event{Round: i}) // returns although nothing is read
	}
	close(release)
	q.Close()
	if len(got) != n {
		t.Fatalf("got %d events, want %d", len(got), n)
	}
	for i, round := range got {
		if round != uint32(i) {
			t.Fatalf("event %d is %d: out of order", i, round)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		900 * time.Microsecond: "<1ms", 12*time.Millisecond + 400*time.Microsecond: "12ms", 1340 * time.Millisecond: "1.3s", 125 * time.Second: "2m5s",
	} {
		if got := view.Duration(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}
