package wasm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func TestEveryKindAnswersFromOneModule(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	if i := p.Info(); i.Name != "guest" || i.Version != "1.0" || i.Isolation != "wasm" || i.Digest != Digest(goGuest(t)) {
		t.Errorf("got %+v", i)
	}
	if !p.Metered() {
		t.Error("a Go guest is not metered")
	}
	d, err := hook(t.Context(), p, "calls", "")
	if err != nil || d.Action != pluginapi.Deny || d.Reason != "1" {
		t.Errorf("hook: got %+v, %v", d, err)
	}
	if got := ask(t, p, "calls", ""); got != "2" {
		t.Errorf("tool: got call number %s in the instance, want 2: it is pooled", got)
	}
	got, _, err := complete(t.Context(), p, "calls", "")
	if err != nil || got.Message.Text != "3" {
		t.Errorf("provider: got %+v, %v", got, err)
	}
	if pts := p.Hook().Points(); len(pts) != 1 || pts[0].Point != pluginapi.BeforeTool {
		t.Errorf("points: got %+v", pts)
	}
	if specs := p.Tool().Specs(); len(specs) != 1 || specs[0].Name != "do" {
		t.Errorf("specs: got %+v", specs)
	}
}

func TestKindsAreThoseOfTheManifest(t *testing.T) {
	p := load(t, Config{}, Grants{}, func(m *pluginapi.Manifest) {
		m.Kinds, m.Hooks = []pluginapi.Kind{pluginapi.KindTool}, nil
	})
	if p.Hook() != nil || p.Provider() != nil || p.Tool() == nil {
		t.Errorf("got hook %v, provider %v, tool %v; want the tool only", p.Hook(), p.Provider(), p.Tool())
	}
}

func TestGoGuestFaults(t *testing.T) {
	// One idle instance: with more, the next call may get one that served before.
	p := load(t, Config{Limits: Limits{HookTimeout: time.Minute, OutputBytes: 1 << 20, Idle: 1}}, Grants{}, nil)
	hasty := load(t, Config{Limits: Limits{HookTimeout: 300 * time.Millisecond, Idle: 1}}, Grants{}, nil)
	for _, c := range []struct {
		do, arg string
		want    plugin.FaultKind
		says    string
	}{
		{"panic", "", plugin.FaultTrap, "deliberate"},
		{"exit", "3", plugin.FaultTrap, "code 3"},
		{"exit", "0", plugin.FaultTrap, "code 0"},
		{"nil", "", plugin.FaultTrap, "nil pointer"},
		{"deadlock", "", plugin.FaultTrap, "deadlock"},
		{"grow", "", plugin.FaultMemory, "limit"},
		{"loop", "", plugin.FaultTimeout, ""},
		{"flood output", "", plugin.FaultOutput, ""},
		{"flood error", "", plugin.FaultOutput, ""},
		{"flood log", "", plugin.FaultOutput, ""},
		{"flood host", "", plugin.FaultHostCalls, "1000"},
		{"no such thing", "", plugin.FaultMalformed, "hook"},
		{"status", "77", plugin.FaultMalformed, "77"},
	} {
		p := p
		if c.want == plugin.FaultTimeout {
			p = hasty
		}
		t.Run(c.do+" "+c.arg, func(t *testing.T) {
			_, err := hook(t.Context(), p, c.do, c.arg)
			if f := wantFault(t, err, c.want); !strings.Contains(f.Error(), c.says) {
				t.Errorf("got %q, want it to say %q", f.Error(), c.says)
			}
			if got := ask(t, p, "calls", ""); got != "1" {
				t.Errorf("the call after it was number %s of its instance, want 1: a broken instance was used again", got)
			}
		})
	}
}

func TestAnswersAreDecodedStrictly(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	for name, doc := range map[string]string{
		"an unknown field":  `{"action":"continue","x":1}`,
		"a duplicate field": `{"action":"continue","action":"continue"}`,
		"another case":      `{"Action":"continue"}`,
		"trailing bytes":    `{"action":"continue"} {}`,
		"invalid UTF-8":     "{\"action\":\"deny\",\"reason\":\"\xff\"}",
		"nothing":           "",
		"not JSON":          "deny",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hook(t.Context(), p, "raw", hex.EncodeToString([]byte(doc)))
			wantFault(t, err, plugin.FaultMalformed)
			_, err = hook(t.Context(), p, "fail", hex.EncodeToString([]byte(doc)))
			wantFault(t, err, plugin.FaultMalformed)
		})
	}
	d, err := hook(t.Context(), p, "raw", hex.EncodeToString([]byte(`{"action":"mutate","document":{"a":[1, 2]}}`)))
	if err != nil || d.Action != pluginapi.Mutate || string(d.Document) != `{"a":[1, 2]}` {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestTypedErrorsPassAndKeepTheInstance(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	want := pluginapi.Failure{Kind: pluginapi.FailRateLimited, Message: "slow down", RetryAfterMS: 1500}
	_, err := hook(t.Context(), p, "fail", hex.EncodeToString(encode(t, want)))
	var got *pluginapi.Failure
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	if n := ask(t, p, "calls", ""); n != "2" {
		t.Errorf("got call number %s, want 2: a typed error is no reason for a new instance", n)
	}
	for name, doc := range map[string]string{
		"an unknown kind": `{"kind":"bad_luck","message":"x"}`,
		"a negative wait": `{"kind":"network","message":"x","retry_after_ms":-1}`,
	} {
		_, err := hook(t.Context(), p, "fail", hex.EncodeToString([]byte(doc)))
		if f := wantFault(t, err, plugin.FaultMalformed); f == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestInputArrivesWhole(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	in := &pluginapi.HookInput{
		Point: pluginapi.BeforeTool, Session: session.Info, Loop: pluginapi.LoopInfo{Status: "running", RoundsStarted: 3},
		Document: pluginapi.Raw(`{"do":"checksum","arg":"` + strings.Repeat("äx", 40_000) + `"}`),
	}
	whole := encode(t, in)
	d, stats, err := p.Hook().Run(t.Context(), session, in)
	if want := checksum(whole); err != nil || d.Reason != want {
		t.Errorf("got %q, %v; want %q", d.Reason, err, want)
	}
	if stats.BytesIn != int64(len(whole)) || stats.BytesOut == 0 || stats.Duration <= 0 || stats.PeakMemory < pageSize {
		t.Errorf("got %+v for %d bytes", stats, len(whole))
	}
}

func checksum(b []byte) string {
	sum := uint64(0)
	for _, c := range b {
		sum = sum*31 + uint64(c)
	}
	return strconv.FormatUint(sum, 10) + " " + strconv.Itoa(len(b))
}

func TestContextEndsCalls(t *testing.T) {
	p := load(t, Config{}, Grants{Clock: true}, nil)
	for name, c := range map[string]struct {
		do, arg string
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		want    error
	}{
		"a loop, by its caller's deadline": {"loop", "", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		}, context.DeadlineExceeded},
		"a loop, by cancellation": {"loop", "", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel
		}, context.Canceled},
		"a real sleep, by its caller's deadline": {"sleep", "60000", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		}, context.DeadlineExceeded},
		"a context that is over before": {"calls", "", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := c.ctx(t.Context())
			defer cancel()
			start := time.Now()
			_, err := hook(ctx, p, c.do, c.arg)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			var f *plugin.Fault
			if errors.As(err, &f) {
				t.Errorf("got the fault %v: the end of a context is not the plugin's", f)
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestDeadlineIsTold(t *testing.T) {
	p := load(t, Config{}, Grants{}, nil)
	tool, err := strconv.Atoi(ask(t, p, "deadline", ""))
	if err != nil || tool > 120_000 || tool < 100_000 {
		t.Errorf("tool: got %d ms, %v; want nearly 120,000", tool, err)
	}
	got, _, err := complete(t.Context(), p, "deadline", "")
	if err != nil || got.Message.Text != "-1" {
		t.Errorf("provider without limit: got %+v, %v; want -1", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, _, err = complete(ctx, p, "deadline", ""); err != nil {
		t.Fatal(err)
	}
	if ms, err := strconv.Atoi(got.Message.Text); err != nil || ms > 30_000 || ms < 20_000 {
		t.Errorf("provider: got %q, want nearly 30,000", got.Message.Text)
	}
}

func TestConfigurationReachesTheGuest(t *testing.T) {
	m := manifest()
	m.Config = pluginapi.Raw(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	mod := Module{Wasm: goGuest(t), SidecarManifest: encode(t, m), Config: json.RawMessage(`{"n": 5}`)}
	p := loadModule(t, Config{}, mod)
	if got, want := ask(t, p, "config", ""), hex.EncodeToString([]byte(`{"n": 5}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, c := range map[string]struct{ schema, config string }{
		"a value of another type":               {string(m.Config), `{"n":"five"}`},
		"a member that the schema doesn't know": {string(m.Config), `{"n":5,"m":6}`},
		"a missing member":                      {string(m.Config), ``},
		"an array":                              {string(m.Config), `[5]`},
		"no JSON":                               {string(m.Config), `{`},
		"a configuration that nobody asked for": {``, `{"n":5}`},
		"a schema that reads a file":            {`{"$ref":"file:///etc/hostname"}`, `{}`},
		"a schema from the network":             {`{"$ref":"https://example.com/s.json"}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := checkConfig([]byte(c.schema), []byte(c.config)); err == nil {
				t.Errorf("got %s", got)
			}
		})
	}
	_, err := checkConfig([]byte(`{"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`), []byte(`{"n":"five","s":6}`))
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "'/n': got string, want integer") || !strings.Contains(err.Error(), "'/s'") {
		t.Errorf("got %q, want both findings on one line", err)
	}
	if got, err := checkConfig(nil, nil); err != nil || string(got) != "{}" {
		t.Errorf("without anything: got %s, %v; want {}", got, err)
	}
}

func TestHostCalls(t *testing.T) {
	request := func(op pluginapi.HostOp, req string) string {
		return fmt.Sprintf("%d %s", op, hex.EncodeToString([]byte(req)))
	}
	kv := mapKV{"a": "1"}
	granted := load(t, Config{}, Grants{KV: true}, nil)
	s := session
	s.KV = kv
	for _, c := range []struct{ name, arg, want string }{
		{"get", request(pluginapi.HostKVGet, "a"), "1 1"},
		{"get what isn't there", request(pluginapi.HostKVGet, "b"), "-3 "},
		{"put", request(pluginapi.HostKVPut, "b\x00two"), "0 "},
		{"get what was put", request(pluginapi.HostKVGet, "b"), "3 two"},
		{"put a value with a zero byte", request(pluginapi.HostKVPut, "c\x00x\x00y"), "0 "},
		{"put one too many", request(pluginapi.HostKVPut, "d\x00x"), "-5 "},
		{"delete", request(pluginapi.HostKVPut, "b\x00"), "0 "},
		{"get what was deleted", request(pluginapi.HostKVGet, "b"), "-3 "},
		{"put without a zero byte", request(pluginapi.HostKVPut, "b"), "-4 "},
		{"an empty key", request(pluginapi.HostKVGet, ""), "-4 "},
		{"a key that isn't UTF-8", request(pluginapi.HostKVGet, "\xff"), "-4 "},
		{"a long key", request(pluginapi.HostKVGet, strings.Repeat("k", pluginapi.MaxKVKeyBytes+1)), "-5 "},
		{"a long value", request(pluginapi.HostKVPut, "a\x00"+strings.Repeat("v", pluginapi.MaxKVValueBytes+1)), "-5 "},
		{"config with a request", request(pluginapi.HostConfigGet, "x"), "-4 "},
		{"an unknown operation", request(99, ""), "-1 "},
	} {
		if got := askIn(t, granted, s, "host", c.arg); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if kv["c"] != "x\x00y" || kv["a"] != "1" || len(kv) != 2 {
		t.Errorf("got %d entries, %.20q", len(kv), kv["a"])
	}

	denied := map[string]*Plugin{
		"not granted":   load(t, Config{}, Grants{}, nil),
		"not requested": load(t, Config{}, Grants{KV: true}, func(m *pluginapi.Manifest) { m.Capabilities = nil }),
	}
	for name, p := range denied {
		before := kv.copy()
		if got := askIn(t, p, s, "host", request(pluginapi.HostKVGet, "a")); got != "-2 " {
			t.Errorf("%s: get: got %q", name, got)
		}
		if got := askIn(t, p, s, "host", request(pluginapi.HostKVPut, "a\x00x")); got != "-2 " || kv["a"] != before["a"] {
			t.Errorf("%s: put: got %q, and %q in the store", name, got, kv["a"])
		}
	}
	if got := ask(t, granted, "host", request(pluginapi.HostKVGet, "a")); got != "-2 " {
		t.Errorf("a session without a store: got %q", got)
	}
}

// lockedBuffer is a log that many goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestWhatGuestsSayIsLoggedAndBounded(t *testing.T) {
	var out lockedBuffer
	p := load(t, Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}, Grants{}, nil)
	ask(t, p, "log", "hello there")
	for _, want := range []string{
		`level=WARN msg="plugin says" plugin=guest session_id=s1 stream=log text="hello there"`,
		`level=INFO msg="plugin says" plugin=guest session_id=s1 stream=stdout text="to stdout"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s\nwant in it %s", out.String(), want)
		}
	}
	before := len(out.String())
	if got := ask(t, p, "flood stderr", ""); got != "done" {
		t.Errorf("got %q: much on stderr is no fault", got)
	}
	after := out.String()[before:]
	if n := strings.Count(after, "xxxx"); n == 0 || strings.Count(after, "x") > pluginapi.MaxLogBytes+1000 || !strings.Contains(after, "(cut:") {
		t.Errorf("got %d bytes of log from 400 KiB on stderr, want at most 64 KiB and a word that it was cut", len(after))
	}
}
