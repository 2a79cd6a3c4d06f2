package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// BenchmarkHookInput reads a hook's input of about 1 KiB, beside encoding/json.
func BenchmarkHookInput(b *testing.B) {
	doc, err := json.Marshal(pluginapi.RoundEndDoc{Message: pluginapi.Message{Role: pluginapi.RoleAssistant, Text: strings.Repeat("word ", 160)}})
	if err != nil {
		b.Fatal(err)
	}
	in, err := json.Marshal(pluginapi.HookInput{Point: pluginapi.AfterRound, Session: session, Document: doc})
	if err != nil {
		b.Fatal(err)
	}
	text := string(in)
	b.Run("wire", func(b *testing.B) {
		for b.Loop() {
			r := wire.NewReader(text)
			var w wire.HookWalk
			var v pluginapi.RoundEndDoc
			w.Reset(r)
			if !w.Decode(func(r *wire.Reader) { v = r.RoundEndDoc() }) || v.Message.Text == "" || w.End() != nil {
				b.Fatal(w.Err())
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			var h pluginapi.HookInput
			var v pluginapi.RoundEndDoc
			if json.Unmarshal(in, &h) != nil || json.Unmarshal(h.Document, &v) != nil {
				b.Fatal("malformed")
			}
		}
	})
}
