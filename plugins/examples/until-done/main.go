// Command until-done is the example of the plugin author's guide: an
// after-round hook that raises stop once the answer ends with a word.
package main

import (
	"encoding/json"
	"strings"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
)

func init() { guest.Serve(newPlugin()) }

func main() {}

type settings struct {
	Word string `json:"word"`
}

func newPlugin() guest.Plugin {
	h := hook{config: guest.Cached[settings]{Decode: decode}}
	return guest.Plugin{Hook: h.decide}
}

// decode is called once per configuration, so encoding/json is fine here.
func decode(config string) (settings, error) {
	s := settings{Word: "DONE"}
	err := json.Unmarshal([]byte(config), &s)
	return s, err
}

type hook struct{ config guest.Cached[settings] }

func (h *hook) decide(c *guest.HookCall) (pluginapi.Decision, error) {
	s, err := h.config.Get(c.Call)
	if err != nil {
		return pluginapi.Decision{}, err
	}
	round, err := c.RoundEnd()
	if err != nil {
		return pluginapi.Decision{}, err
	}
	if strings.HasSuffix(strings.TrimSpace(round.Message.Text), s.Word) {
		return guest.Stop("the answer ends with " + s.Word), nil
	}
	return guest.Continue(), nil
}
