package host

import (
	"fmt"
	"strconv"
	"strings"

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
	// nextCall is, for an id that needed a number to be unique, the number after
	// the greatest one there is.
	nextCall map[string]int
	open     []pluginapi.ToolCall // calls of an assistant message without a result, in call order (L-9)
	kv       map[string]map[string][]byte
}

func newConversation() *conversation {
	return &conversation{callIDs: map[string]bool{}, nextCall: map[string]int{}, kv: map[string]map[string][]byte{}}
}

// apply adds one entry of the log. message is its message's JSON; nil: not known.
func (c *conversation) apply(e *Entry, message []byte) error {
	switch e.Type {
	case EntryMessage:
		if message == nil {
			var err error
			if message, err = encodeMessage(e.Message); err != nil {
				return fmt.Errorf("message: %w", err)
			}
		}
		c.add(*e.Message, message)
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
		c.noteCall(call.ID)
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

// noteCall remembers that id is taken.
func (c *conversation) noteCall(id string) {
	c.callIDs[id] = true
	dot := strings.LastIndexByte(id, '.')
	if dot < 0 {
		return
	}
	if n, err := strconv.Atoi(id[dot+1:]); err == nil && n >= c.nextCall[id[:dot]] {
		c.nextCall[id[:dot]] = n + 1
	}
}

// uniqueCallID makes id unique within the session (L-9 matches results by it).
func (c *conversation) uniqueCallID(id string, taken map[string]bool) string {
	if id == "" {
		id = "call"
	}
	unique := id
	for n := max(2, c.nextCall[id]); c.callIDs[unique] || taken[unique]; n++ {
		unique = fmt.Sprintf("%s.%d", id, n)
	}
	taken[unique] = true
	return unique
}
