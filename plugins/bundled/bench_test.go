package bundled_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/internal/bench"
	"github.com/loophost/loophost/pluginapi"
)

// prose is n bytes of JSON string content with what real text has: words, line
// breaks and a few quotes.
func prose(n int) string {
	const line = "The quick brown fox said \"no\" to the lazy dog, and then went on to the next line of the report.\n"
	return strings.Repeat(line, n/len(line)+1)[:n]
}

// BenchmarkHookCall is a whole hook call as a host makes it, warm and with its
// deadline enforced: the document is decoded into a struct in the guest and a
// decision comes back. The floor is the same without a guest: encoding/json decodes
// the document into the same struct and encodes and decodes a decision.
func BenchmarkHookCall(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("tool-guard/%dKiB", size>>10), func(b *testing.B) {
			args, err := json.Marshal(map[string]string{"path": "notes/a.txt", "content": prose(size - 120)})
			if err != nil {
				b.Fatal(err)
			}
			p := load(b, "tool-guard", `{"rules": [{"tool": "write_*", "arguments": {"path": "^secrets/"}, "action": "deny"}]}`, wasm.Grants{})
			benchHook(b, p, pluginapi.BeforeTool, pluginapi.ToolCall{ID: "call-1", Name: "read_file", Arguments: args}, new(pluginapi.ToolCall))
		})
		b.Run(fmt.Sprintf("stop-when/%dKiB", size>>10), func(b *testing.B) {
			p := load(b, "stop-when", `{"pattern": "never said"}`, wasm.Grants{})
			doc := pluginapi.RoundEndDoc{Iteration: 1, Round: 1, Complete: true, Results: []pluginapi.ToolResult{}, Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: prose(size - 130)}}
			benchHook(b, p, pluginapi.AfterRound, doc, new(pluginapi.RoundEndDoc))
		})
	}
}

func benchHook(b *testing.B, p *wasm.Plugin, point pluginapi.HookPoint, document, into any) {
	b.Helper()
	doc, err := json.Marshal(document)
	if err != nil {
		b.Fatal(err)
	}
	in := &pluginapi.HookInput{Point: point, Session: info, Document: doc}
	hook, session := p.Hook(), plugin.Session{Info: info}
	bench.Against(b, max(100, 2_000_000/len(doc)), func(steps int) error {
		for range steps {
			d, _, err := hook.Run(b.Context(), session, in)
			if err == nil && d.Action != pluginapi.Continue {
				err = fmt.Errorf("got %+v, want continue", d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, native(doc, into))
	b.ReportMetric(float64(peak(b, hook, session, in))/(1<<20), "MiB/instance")
}

// peak is how much memory the guest has.
func peak(b *testing.B, hook plugin.Hook, session plugin.Session, in *pluginapi.HookInput) int64 {
	b.Helper()
	_, stats, err := hook.Run(b.Context(), session, in)
	if err != nil {
		b.Fatal(err)
	}
	return stats.PeakMemory
}

// native is the same work with encoding/json and without a guest.
func native(doc []byte, into any) bench.Side {
	return func(steps int) error {
		for range steps {
			if err := json.Unmarshal(doc, into); err != nil {
				return err
			}
			answer, err := json.Marshal(pluginapi.Decision{Action: pluginapi.Continue})
			if err != nil {
				return err
			}
			var d pluginapi.Decision
			if err := json.Unmarshal(answer, &d); err != nil {
				return err
			}
		}
		return nil
	}
}

// BenchmarkScripted is a provider call in a session with 1 MiB of history, of
// which the provider reads the front, beside the same call in a session with one
// short message.
func BenchmarkScripted(b *testing.B) {
	p := load(b, "scripted", `{"script": {"steps": [{"text": "one"}], "repeat": true}}`, wasm.Grants{})
	call := func(text string) bench.Side {
		req := &plugin.Request{ProviderRequest: pluginapi.ProviderRequest{
			Call: pluginapi.CallInfo{Ordinal: 1}, Messages: []pluginapi.Message{{Role: pluginapi.RoleUser}},
		}}
		req.Encoded = [][]byte{[]byte(`{"role":"user","text":"` + text + `"}`)}
		provider, session := p.Provider(), plugin.Session{Info: info}
		return func(steps int) error {
			var errs error
			for range steps {
				_, err := provider.Complete(b.Context(), session, req, func(pluginapi.Chunk) error { return nil })
				errs = errors.Join(errs, err)
			}
			return errs
		}
	}
	bench.Against(b, 1_000, call(strings.Repeat("x", 1<<20)), call("x"))
}
