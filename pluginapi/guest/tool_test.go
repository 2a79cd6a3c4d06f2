package guest_test

import (
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func TestAToolReadsItsCallAndAnswers(t *testing.T) {
	p := guest.Plugin{Tool: func(c *guest.ToolCall) (pluginapi.ToolOutput, error) {
		r := c.Arguments()
		f := r.Fields([]string{"path"})
		path := ""
		for _, ok := f.Next(); ok; _, ok = f.Next() {
			path = r.Text()
		}
		if err := r.End(); err != nil {
			return guest.Refuse(err.Error()), nil
		}
		return guest.Answer(c.Session().ID[:4] + " " + c.ID() + " " + c.Name() + " " + path), nil
	}}
	cases := []struct {
		name, args, want string
		isError          bool
	}{
		{"arguments", `{"path": "a"}`, "0190 call-1 read a", false},
		{"no arguments", ``, "0190 call-1 read ", false},
		{"wrong arguments", `{"path": 1}`, "json: unexpected character, want a string at byte 8", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := new(guesttest.Host).Tool(p, "read", c.args)
			if err != nil || got.Text != c.want || got.IsError != c.isError {
				t.Errorf("got %+v, %v; want %q (error %v)", got, err, c.want, c.isError)
			}
		})
	}
}

func TestBuffersAreUsedAgainAcrossCalls(t *testing.T) {
	var kept []string
	p := guest.Plugin{Tool: func(c *guest.ToolCall) (pluginapi.ToolOutput, error) {
		r := c.Arguments()
		f := r.Fields([]string{"t"})
		for _, ok := f.Next(); ok; _, ok = f.Next() {
			kept = append(kept, r.Text())
		}
		return guest.Answer(""), r.End()
	}}
	h := &echoHost{inputs: []string{
		`{"session":{},"call":{"id":"1","name":"n","arguments":{"t":"first"}}}`,
		`{"session":{},"call":{"id":"2","name":"n","arguments":{"t":"other"}}}`,
	}}
	r := guest.NewRunner(p, h)
	for i := range h.inputs {
		h.now = i
		if s := r.Call(pluginapi.OpTool, len(h.inputs[i])); s != pluginapi.StatusOK {
			t.Fatalf("call %d: status %d", i, s)
		}
	}
	if kept[0] != "first" || kept[1] != "other" {
		t.Errorf("arguments that were kept: got %q, want first and other", kept)
	}
}

// echoHost serves one of several inputs.
type echoHost struct {
	guesttest.Host
	inputs []string
	now    int
}

func (h *echoHost) InputRead(p []byte, off int) int { return copy(p, h.inputs[h.now][off:]) }
