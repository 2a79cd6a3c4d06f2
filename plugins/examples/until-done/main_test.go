package main

import (
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func TestItStopsOnceTheAnswerEndsWithTheWord(t *testing.T) {
	tests := []struct {
		name, config, answer string
		want                 pluginapi.Action
	}{
		{"the default word at the end", `{}`, "all is well. DONE\n", pluginapi.Stop},
		{"the word in the middle only", `{}`, "DONE is what I will say", pluginapi.Continue},
		{"another word", `{"word": "FINIS"}`, "FINIS", pluginapi.Stop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &guesttest.Host{Config: tt.config}
			doc := pluginapi.RoundEndDoc{Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: tt.answer}, Results: []pluginapi.ToolResult{}}
			d, err := h.Hook(newPlugin(), pluginapi.AfterRound, doc)
			if err != nil {
				t.Fatal(err)
			}
			if d.Action != tt.want {
				t.Errorf("got %s, want %s", d.Action, tt.want)
			}
		})
	}
}
