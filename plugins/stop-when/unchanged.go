package main

import (
	"errors"
	"hash"
	"hash/fnv"
	"io"
	"strconv"
	"strings"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// stateKey holds "GENERATION FINGERPRINT COUNT": what the last round looked like
// and how many rounds in a row were like the one before. It is in the key-value
// store because an instance keeps nothing for sure, and it names the loop's
// generation because a new loop of the session starts to count anew.
const stateKey = "last_round"

// unchanged counts the rounds that were like the one before them, and raises stop at the limit.
func (h *hook) unchanged(c *guest.HookCall, s settings, doc *pluginapi.RoundEndDoc) (pluginapi.Decision, error) {
	session, err := c.Session()
	if err != nil {
		return pluginapi.Decision{}, err
	}
	round := session.Generation + " " + fingerprint(doc)
	old, _, err := c.KVGet(stateKey)
	if err != nil {
		return pluginapi.Decision{}, err
	}
	count, err := follow(string(old), round)
	if err != nil {
		return pluginapi.Decision{}, err
	}
	if err := c.KVPut(stateKey, []byte(round+" "+strconv.FormatUint(count, 10))); err != nil {
		return pluginapi.Decision{}, err
	}
	if count < uint64(s.unchangedRounds) {
		return guest.Continue(), nil
	}
	span := "a round"
	if count > 1 {
		span = strconv.FormatUint(count, 10) + " rounds"
	}
	return guest.StopNoProgress("nothing has changed for " + span +
		": the same answer, tool calls and results as the round before"), nil
}

// follow is how many rounds in a row, with this one, were like the one before.
func follow(old, round string) (uint64, error) {
	before, count, ok := strings.Cut(old, round+" ")
	if !ok || before != "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil {
		return 0, errors.New("the entry " + stateKey + " is damaged: " + strconv.Quote(old))
	}
	return n + 1, nil
}

// fingerprint is the same for two rounds with the same answer text, tool calls
// and results. The ids of calls differ every time and don't count, and neither
// does white space between the arguments.
func fingerprint(doc *pluginapi.RoundEndDoc) string {
	h := fnv.New128a()
	add(h, doc.Message.Text)
	add(h, strconv.Itoa(len(doc.Message.ToolCalls)))
	for i := range doc.Message.ToolCalls {
		call := &doc.Message.ToolCalls[i]
		add(h, call.Name)
		add(h, string(wire.AppendRaw(nil, call.Arguments)))
	}
	for i := range doc.Results {
		res := &doc.Results[i]
		add(h, res.Name)
		add(h, string(res.Status))
		add(h, res.Text)
	}
	const digits = "0123456789abcdef"
	var out []byte
	for _, b := range h.Sum(nil) {
		out = append(out, digits[b>>4], digits[b&15])
	}
	return string(out)
}

// add hashes s with its length, so that no two lists of texts look alike.
func add(h hash.Hash, s string) {
	// A hash never fails to write.
	_, _ = io.WriteString(h, strconv.Itoa(len(s))+":"+s)
}
