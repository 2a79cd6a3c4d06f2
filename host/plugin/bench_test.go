package plugin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// BenchmarkChain is what the chain adds to its hooks, by the size of the
// document; the floor is one call of the same hook without a chain.
func BenchmarkChain(b *testing.B) {
	h := hook("h0", pluginapi.HookDecl{Point: pluginapi.BeforePrompt}, answers(pluginapi.Decision{Action: pluginapi.Continue}))
	for _, size := range []int{64, 1 << 10, 1 << 20} {
		doc, err := json.Marshal(pluginapi.PromptDoc{Text: strings.Repeat("x", size)})
		if err != nil {
			b.Fatal(err)
		}
		in := &pluginapi.HookInput{Point: pluginapi.BeforePrompt, Session: env.Session, Loop: env.Loop, Document: doc}
		b.Run(fmt.Sprintf("floor/%d", size), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := h.Run(b.Context(), plugin.Session{Info: env.Session}, in); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, n := range []int{1, 4} {
			hooks := make([]plugin.Hook, n)
			for i := range hooks {
				h.Name = fmt.Sprintf("h%d", i)
				hooks[i] = h
			}
			c := chain(b, hooks...)
			b.Run(fmt.Sprintf("hooks=%d/%d", n, size), func(b *testing.B) {
				for b.Loop() {
					if _, err := c.Run(b.Context(), env, pluginapi.BeforePrompt, doc); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
