package main

import (
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

// FuzzScript plays every step of every script that is accepted.
func FuzzScript(f *testing.F) {
	f.Add(demo)
	f.Add(`{"steps":[{"error":{"kind":"network"}},{"text":"äö","chunks":9,"usage":{"input_tokens":1},"finish":"length"}]}`)
	f.Add(`{"steps":[{"tool_calls":[{"name":"a","arguments":{"b":["\ud800"]}}]}],"repeat":false}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseScript(text)
		if err != nil {
			return
		}
		p := guest.Plugin{Provider: func(c *guest.ProviderCall) error {
			info, err := c.Info()
			if err != nil {
				return err
			}
			st, err := s.at(info.Ordinal)
			if err != nil {
				return err
			}
			return st.play(c, info.Ordinal)
		}}
		for i, st := range s.steps {
			// The test host decodes every chunk strictly.
			chunks, err := new(guesttest.Host).Provider(p, pluginapi.ProviderRequest{Call: pluginapi.CallInfo{Ordinal: uint64(i + 1)}})
			if (err == nil) != (st.failure == nil) {
				t.Fatalf("step %d: %v, want the failure %v", i+1, err, st.failure)
			}
			var got strings.Builder
			for _, c := range chunks {
				if c.Type == pluginapi.ChunkText {
					got.WriteString(c.Text)
				}
			}
			if got.String() != st.text {
				t.Fatalf("step %d streams %q, want %q", i+1, got.String(), st.text)
			}
		}
	})
}
