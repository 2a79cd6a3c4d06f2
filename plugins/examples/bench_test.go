package examples_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/bench"
	"github.com/loophost/loophost/pluginapi"
)

// BenchmarkHookInC is a whole call of the hook in C, warm and with its deadline
// enforced. The floor is the same decision without a guest: encoding/json decodes
// the document into a struct.
func BenchmarkHookInC(b *testing.B) {
	p := load(b, "c-hook", "hook.wasm")
	doc, err := json.Marshal(pluginapi.ToolCall{ID: "1", Name: "read_file", Arguments: pluginapi.Raw(`{"path":"` + strings.Repeat("word ", 190) + `"}`)})
	if err != nil {
		b.Fatal(err)
	}
	in := &pluginapi.HookInput{Point: pluginapi.BeforeTool, Document: doc}
	hook := p.Hook()
	bench.Against(b, 2_000, func(steps int) error {
		for range steps {
			d, _, err := hook.Run(b.Context(), plugin.Session{}, in)
			if err == nil && d.Action != pluginapi.Continue {
				err = fmt.Errorf("got %+v, want continue", d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(steps int) error {
		for range steps {
			var call pluginapi.ToolCall
			if err := json.Unmarshal(doc, &call); err != nil {
				return err
			}
		}
		return nil
	})
}
