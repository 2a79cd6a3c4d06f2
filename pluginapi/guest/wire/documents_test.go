package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// document is one kind of document, with what this package can do with it.
type document interface {
	// compare checks data against encoding/json.
	compare(t *testing.T, data []byte)
	samples() [][]byte
}

type kind[T any] struct {
	read   func(*wire.Reader) T
	write  func([]byte, *T) []byte // nil: guests only read it
	sample []T
}

func ptr[T any](v T) *T { return &v }

var (
	call    = pluginapi.ToolCall{ID: "c1", Name: "read_file", Arguments: pluginapi.Raw(`{"path":"a\n","n":[1,2.5,null]}`)}
	result  = pluginapi.ToolResult{CallID: "c1", Name: "read_file", Status: pluginapi.ResultOK, Text: "x\u0000\"\\/\u2028<>&"}
	usage   = pluginapi.Usage{InputTokens: ptr(uint64(1 << 63)), OutputTokens: nil}
	session = pluginapi.SessionInfo{ID: "s", ExecutionID: "e", Generation: "g", Revision: 1<<64 - 1}
	answer  = pluginapi.Message{Role: pluginapi.RoleAssistant, Text: "äöü🌊", Reasoning: "hm", ToolCalls: []pluginapi.ToolCall{call, call}}
	toolMsg = pluginapi.Message{Role: pluginapi.RoleTool, Result: &result}
	request = pluginapi.ProviderRequest{
		Call: pluginapi.CallInfo{Ordinal: 9, Iteration: 1, Round: 2, Attempt: 3}, Model: "m", System: "s", MaxTokens: 1<<32 - 1,
		Options: pluginapi.Raw(`{"t":0.5}`),
		Tools:   []pluginapi.ToolSpec{{Name: "a", Description: "b", InputSchema: pluginapi.Raw(`{"type":"object"}`), ReadOnly: true, Idempotent: true}},
		Messages: []pluginapi.Message{
			{Role: pluginapi.RoleUser, Text: "do", Origin: "hook:x"}, answer, toolMsg,
		},
	}
)

// documents lists every document of the contract that crosses to or from a guest.
var documents = []document{
	kind[pluginapi.HookInput]{read: hookInput, sample: []pluginapi.HookInput{
		{Point: pluginapi.AfterRound, Session: session, Loop: pluginapi.LoopInfo{Status: "running", MaxIterations: 1, RoundsStarted: 3}, Document: pluginapi.Raw(`{"a":1}`)},
	}},
	kind[pluginapi.StartDoc]{read: (*wire.Reader).StartDoc, sample: []pluginapi.StartDoc{{Objective: "o", Messages: 4}}},
	kind[pluginapi.RoundDoc]{read: (*wire.Reader).RoundDoc, sample: []pluginapi.RoundDoc{{Iteration: 1, Round: 2}}},
	kind[pluginapi.RoundEndDoc]{read: (*wire.Reader).RoundEndDoc, sample: []pluginapi.RoundEndDoc{
		{Iteration: 1, Round: 2, Complete: true, Message: answer, Results: []pluginapi.ToolResult{result}}, {},
	}},
	kind[pluginapi.FinalizeDoc]{read: (*wire.Reader).FinalizeDoc, sample: []pluginapi.FinalizeDoc{{FinalText: "f", Denies: 5}}},
	kind[pluginapi.EndDoc]{read: (*wire.Reader).EndDoc, sample: []pluginapi.EndDoc{{Status: "completed", ReasonCode: "goal_met", Reason: "r"}}},
	kind[pluginapi.NotificationDoc]{read: (*wire.Reader).NotificationDoc, sample: []pluginapi.NotificationDoc{{Kind: "ask", Text: "t"}}},
	kind[pluginapi.ToolInput]{read: (*wire.Reader).ToolInput, sample: []pluginapi.ToolInput{{Session: session, Call: call}}},
	kind[pluginapi.PromptDoc]{(*wire.Reader).PromptDoc, wire.AppendPromptDoc, []pluginapi.PromptDoc{{Text: "p"}}},
	kind[pluginapi.AnswerDoc]{(*wire.Reader).AnswerDoc, wire.AppendAnswerDoc, []pluginapi.AnswerDoc{{Message: answer, Usage: &usage}, {}}},
	kind[pluginapi.ToolCall]{(*wire.Reader).ToolCall, wire.AppendToolCall, []pluginapi.ToolCall{call}},
	kind[pluginapi.ToolResult]{(*wire.Reader).ToolResult, wire.AppendToolResult, []pluginapi.ToolResult{result}},
	kind[pluginapi.ToolResultDoc]{(*wire.Reader).ToolResultDoc, wire.AppendToolResultDoc, []pluginapi.ToolResultDoc{{Call: call, Result: result}}},
	kind[pluginapi.Message]{(*wire.Reader).Message, wire.AppendMessage, []pluginapi.Message{answer, toolMsg, {}}},
	kind[pluginapi.Usage]{(*wire.Reader).Usage, wire.AppendUsage, []pluginapi.Usage{usage, {}}},
	kind[pluginapi.ProviderRequest]{(*wire.Reader).ProviderRequest, wire.AppendProviderRequest, []pluginapi.ProviderRequest{request, {}}},
	kind[pluginapi.Decision]{write: wire.AppendDecision, sample: []pluginapi.Decision{
		{Action: pluginapi.Mutate, Reason: "r\n", Code: pluginapi.CodeNoProgress, Document: pluginapi.Raw("{\n \"a\" : \"b \\\" c\"}"), Text: "t"}, {},
	}},
	kind[pluginapi.ToolOutput]{write: wire.AppendToolOutput, sample: []pluginapi.ToolOutput{{Text: "t", IsError: true}, {}}},
	kind[pluginapi.Failure]{write: wire.AppendFailure, sample: []pluginapi.Failure{{Kind: pluginapi.FailRateLimited, Message: "m", RetryAfterMS: -1}, {}}},
	kind[pluginapi.Chunk]{write: wire.AppendChunk, sample: []pluginapi.Chunk{
		{Type: pluginapi.ChunkText, Text: "t\r\n"},
		{Type: pluginapi.ChunkToolCall, ToolCall: &call},
		{Type: pluginapi.ChunkUsage, Usage: &usage},
		{Type: pluginapi.ChunkResult, Finish: pluginapi.FinishStop},
	}},
}

// hookInput reads a hook's input and all of its parts.
func hookInput(r *wire.Reader) (v pluginapi.HookInput) {
	var w wire.HookWalk
	w.Reset(r)
	in := w.All()
	v.Point, v.Document = in.Point, pluginapi.Raw(in.Document)
	if in.Session != "" {
		p := wire.NewReader(in.Session)
		if v.Session = p.SessionInfo(); p.End() != nil {
			r.Fail("session")
		}
	}
	if in.Loop != "" {
		p := wire.NewReader(in.Loop)
		if v.Loop = p.LoopInfo(); p.End() != nil {
			r.Fail("loop")
		}
	}
	return v
}

func (k kind[T]) samples() (out [][]byte) {
	for _, s := range k.sample {
		b, err := json.Marshal(s)
		if err != nil {
			return nil
		}
		out = append(out, b)
	}
	return out
}

// same compares values that JSON can't tell apart.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterValues(func(a, b pluginapi.Raw) bool { return len(a)+len(b) > 0 },
		cmp.Comparer(func(a, b pluginapi.Raw) bool { return compact(a) == compact(b) })),
}

// compact is raw without white space; an absent value, null and {} are one.
func compact(raw pluginapi.Raw) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil && len(raw) > 0 {
		return "not JSON: " + string(raw)
	}
	if s := b.String(); s != "null" && s != "{}" {
		return s
	}
	return ""
}

func strict[T any](data []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&v); err != nil {
		return v, err
	}
	if _, err = d.Token(); !errors.Is(err, io.EOF) {
		return v, errors.New("bytes after the document")
	}
	return v, nil
}

func (k kind[T]) compare(t *testing.T, data []byte) {
	t.Helper()
	std, stdErr := strict[T](data)
	if k.read != nil {
		r := wire.NewReader(string(data))
		got := k.read(r)
		if err := r.End(); err == nil {
			// What this package accepts, encoding/json reads as the same value.
			if stdErr != nil {
				t.Fatalf("%T: accepted what encoding/json refuses (%v): %q", got, stdErr, data)
			}
			if diff := cmp.Diff(std, got, same); diff != "" {
				t.Fatalf("%T: %q (-encoding/json +wire):\n%s", got, data, diff)
			}
		}
	}
	if stdErr != nil {
		return
	}
	canonical, err := json.Marshal(std)
	if err != nil || !utf8.Valid(canonical) {
		return // a raw value that isn't UTF-8
	}
	if want, err := strict[T](canonical); k.read != nil && err == nil {
		// What encoding/json writes, this package reads as the same value.
		r := wire.NewReader(string(canonical))
		got := k.read(r)
		if err := r.End(); err != nil && !tooDeep(err) && !noPoint(err) {
			t.Fatalf("%T: refused %q: %v", got, canonical, err)
		} else if diff := cmp.Diff(want, got, same); err == nil && diff != "" {
			t.Fatalf("%T: %q (-encoding/json +wire):\n%s", got, canonical, diff)
		}
	}
	if k.write != nil {
		// What this package writes, encoding/json reads as the same value.
		written := k.write([]byte("head"), &std)
		line, ok := bytes.CutPrefix(written, []byte("head"))
		if !ok || bytes.ContainsAny(line, "\r\n") || !utf8.Valid(line) {
			t.Fatalf("%T: wrote %q", std, written)
		}
		if got, err := strict[T](line); err != nil {
			t.Fatalf("%T: wrote %q: %v", std, line, err)
		} else if diff := cmp.Diff(std, got, same); diff != "" {
			t.Fatalf("%T: wrote %q (-want +got):\n%s", std, line, diff)
		}
	}
}

func tooDeep(err error) bool { return strings.Contains(err.Error(), "nested too deep") }

// noPoint: encoding/json can't say that a field is required.
func noPoint(err error) bool { return strings.Contains(err.Error(), "missing field point") }

func TestDocumentsReadAndWriteLikeEncodingJSON(t *testing.T) {
	for _, d := range documents {
		samples := d.samples()
		if len(samples) == 0 {
			t.Errorf("%T has no sample", d)
		}
		for _, s := range samples {
			d.compare(t, s)
			// Every document cut short, and with one byte more, is refused or read alike.
			for i := range s {
				d.compare(t, s[:i])
			}
			d.compare(t, append(bytes.Clone(s), '}'))
		}
	}
}

func TestUnknownAndDuplicateFieldsAreErrors(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"unknown", `{"text":"a","more":1}`, `json: unknown field "more" at byte 11`},
		{"duplicate", `{"text":"a","text":"a"}`, `json: duplicate field "text" at byte 11`},
		{"duplicate by an escape", `{"text":"a","\u0074ext":"a"}`, `json: duplicate field "text" at byte 11`},
		{"another case", `{"Text":"a"}`, `json: unknown field "Text" at byte 1`},
		{"trailing bytes", `{"text":"a"}{}`, `json: unexpected bytes after the document at byte 12`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := wire.NewReader(c.in)
			r.PromptDoc()
			if err := r.End(); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestInvalidUTF8IsWrittenAsReplacement(t *testing.T) {
	for _, s := range []string{"\xff", "a\xc3", "\xf0\x9f\x8cx", "\xed\xa0\x80", "ok \xe2\x82 ok", "\x7f\x00\x1f"} {
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(wire.AppendText(nil, s), &got); err != nil || got != want {
			t.Errorf("%q: got %q (%v), want %q", s, got, err, want)
		}
	}
}

func FuzzDocuments(f *testing.F) {
	for i, d := range documents {
		for _, s := range d.samples() {
			f.Add(byte(i), s)
		}
	}
	f.Add(byte(0), []byte(`{"point":"after_round","document":"\ud83c\udf0a\u0000"}`))
	f.Add(byte(0), []byte(`{"point":"PreToolUse"}`))
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		documents[int(which)%len(documents)].compare(t, data)
	})
}
