package host

import (
	"encoding/json"
	"fmt"

	"github.com/loophost/loophost/pluginapi"
)

// conversation is what a session's log adds up to: its messages, the tool calls
// that still lack a result, and the plugins' key-value entries. Adding an entry
// costs the entry, never the history.
type conversation struct {
	messages []pluginapi.Message
	encoded  [][]byte // the JSON of each message, in step
	bytes    int64    // of encoded, together
	callIDs  map[string]bool
	open     []pluginapi.ToolCall // calls of an assistant message without a result, in call order (L-9)
	kv       map[string]map[string][]byte
}

func newConversation() *conversation {
	return &conversation{callIDs: map[string]bool{}, kv: map[string]map[string][]byte{}}
}

// apply adds one entry of the log.
func (c *conversation) apply(e *Entry) error {
	switch e.Type {
	case EntryMessage:
		data, err := json.Marshal(e.Message)
		if err != nil {
			return fmt.Errorf("message: %w", err)
		}
		c.add(*e.Message, data)
	case EntryKV:
		c.put(e.KV)
	}
	return nil
}

func (c *conversation) add(m pluginapi.Message, encoded []byte) {
	c.messages = append(c.messages, m)
	c.encoded = append(c.encoded, encoded)
	c.bytes += int64(len(encoded))
	for _, call := range m.ToolCalls {
		c.callIDs[call.ID] = true
		c.open = append(c.open, call)
	}
	if m.Result == nil {
		return
	}
	for i, call := range c.open {
		if call.ID == m.Result.CallID {
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			break
		}
	}
}

func (c *conversation) put(e *KVEntry) {
	entries := c.kv[e.Plugin]
	if entries == nil {
		entries = map[string][]byte{}
		c.kv[e.Plugin] = entries
	}
	if len(e.Value) == 0 {
		delete(entries, e.Key)
		return
	}
	entries[e.Key] = e.Value
}

// uniqueCallID makes id unique within the session (L-9 matches results by it).
func (c *conversation) uniqueCallID(id string, taken map[string]bool) string {
	if id == "" {
		id = "call"
	}
	unique := id
	for n := 2; c.callIDs[unique] || taken[unique]; n++ {
		unique = fmt.Sprintf("%s.%d", id, n)
	}
	taken[unique] = true
	return unique
}
