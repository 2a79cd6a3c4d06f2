package host

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/loophost/loophost/pluginapi"
)

func TestAnEntryEncodedAroundItsMessageIsTheSame(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, e := range map[string]Entry{
		"a message":            {Type: EntryMessage, Time: at, ExecutionID: "x", Generation: "g", Message: &pluginapi.Message{Role: pluginapi.RoleUser, Text: "<a> & \u2028"}},
		"a tool's result":      {Type: EntryMessage, Time: at, Iteration: 2, Message: &pluginapi.Message{Role: pluginapi.RoleTool, Result: &pluginapi.ToolResult{CallID: "c", Text: "t"}}},
		"an entry without one": {Type: EntryRound, Time: at, Iteration: 1, Round: 2},
	} {
		want, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var message []byte
		if e.Message != nil {
			if message, err = json.Marshal(e.Message); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := e.encode(message); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
}

func TestCallIDsStayUniqueHoweverManyThereAre(t *testing.T) {
	c := newConversation()
	for i, want := range []string{"call", "call.2", "call.3", "call.4"} {
		taken := map[string]bool{}
		got := c.uniqueCallID("call", taken)
		if got != want {
			t.Fatalf("call %d: got the id %q, want %q", i+1, got, want)
		}
		c.noteCall(got)
	}
	c.noteCall("call.9")
	c.noteCall("call.x")
	taken := map[string]bool{"call.10": true}
	if got := c.uniqueCallID("call", taken); got != "call.11" {
		t.Errorf("got the id %q, want call.11: call.9 is in the session and call.10 in the answer", got)
	}
	if got := c.uniqueCallID("", map[string]bool{}); got != "call.10" {
		t.Errorf("an empty id: got %q, want call.10", got)
	}
}
