package main

import (
	"errors"
	"strconv"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

const (
	maxDelayMS = 3_600_000
	maxChunks  = 10_000
)

// script is what the provider plays: one step per provider call.
type script struct {
	steps  []step
	repeat bool
}

// step is one answer: text, tool calls, an error, or several of these in this order.
type step struct {
	delayMS   uint32 // before the first piece
	chunks    uint32 // pieces of the text; 0: one
	reasoning string
	text      string
	calls     []toolCall
	usage     *pluginapi.Usage // nil: unknown
	finish    pluginapi.Finish // "": what the answer is
	failure   *pluginapi.Failure
}

type toolCall struct {
	name      string
	arguments pluginapi.Raw
}

// decodeConfig reads the plugin's configuration. Without a script it is the demo.
func decodeConfig(config string) (script, error) {
	text := demo
	r := wire.NewReader(config)
	f := r.Fields([]string{"script"})
	for _, ok := f.Next(); ok; _, ok = f.Next() {
		if r.Kind() == wire.KindText {
			text = r.Text()
		} else {
			text = r.Raw()
		}
	}
	if err := r.End(); err != nil {
		return script{}, errors.New("the configuration of scripted: " + err.Error())
	}
	s, err := parseScript(text)
	if err != nil {
		return script{}, errors.New("the script: " + err.Error())
	}
	return s, nil
}

// parseScript reads {"steps": [STEP, …], "repeat": true|false}.
func parseScript(text string) (script, error) {
	var s script
	r := wire.NewReader(text)
	f := r.Fields([]string{"steps", "repeat"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			for r.Array(); r.Elem(); {
				s.steps = append(s.steps, readStep(r, len(s.steps)+1))
			}
		case 1:
			s.repeat = r.Bool()
		}
	}
	if err := r.End(); err != nil {
		return script{}, err
	}
	if len(s.steps) == 0 {
		return script{}, errors.New(`"steps" is empty; give at least one`)
	}
	return s, nil
}

var (
	stepNames  = []string{"text", "tool_calls", "error", "delay_ms", "chunks", "reasoning", "usage", "finish"}
	callNames  = []string{"name", "arguments"}
	errorNames = []string{"kind", "message", "retry_after_ms"}
)

func readStep(r *wire.Reader, number int) step {
	var s step
	f := r.Fields(stepNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			s.text = r.Text()
		case 1:
			for r.Array(); r.Elem(); {
				s.calls = append(s.calls, readCall(r))
			}
		case 2:
			s.failure = readFailure(r)
		case 3:
			if s.delayMS = r.Uint32(); s.delayMS > maxDelayMS {
				r.Fail("delay_ms over " + strconv.Itoa(maxDelayMS))
			}
		case 4:
			if s.chunks = r.Uint32(); s.chunks == 0 || s.chunks > maxChunks {
				r.Fail("chunks is not in 1 … " + strconv.Itoa(maxChunks))
			}
		case 5:
			s.reasoning = r.Text()
		case 6:
			u := r.Usage()
			s.usage = &u
		case 7:
			s.finish = pluginapi.Finish(r.Text())
			if s.finish != pluginapi.FinishStop && s.finish != pluginapi.FinishToolCalls && s.finish != pluginapi.FinishLength {
				r.Fail("finish is not stop, tool_calls or length")
			}
		}
	}
	if !f.Has(0) && !f.Has(1) && !f.Has(2) {
		r.Fail("step " + strconv.Itoa(number) + " has none of text, tool_calls and error")
	}
	return s
}

func readCall(r *wire.Reader) toolCall {
	c := toolCall{arguments: pluginapi.Raw("{}")}
	f := r.Fields(callNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			c.name = r.Text()
		case 1:
			if r.Kind() != wire.KindObject {
				r.Fail("arguments of a tool call is not an object")
			}
			c.arguments = pluginapi.Raw(r.Raw())
		}
	}
	if c.name == "" {
		r.Fail("a tool call has no name")
	}
	return c
}

func readFailure(r *wire.Reader) *pluginapi.Failure {
	v := &pluginapi.Failure{Kind: pluginapi.FailInternal}
	f := r.Fields(errorNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			v.Kind = readKind(r)
		case 1:
			v.Message = r.Text()
		case 2:
			v.RetryAfterMS = int64(r.Uint32())
		}
	}
	return v
}

func readKind(r *wire.Reader) pluginapi.FailureKind {
	switch k := pluginapi.FailureKind(r.Text()); k {
	case pluginapi.FailAuth, pluginapi.FailInvalidRequest, pluginapi.FailRateLimited, pluginapi.FailOverloaded,
		pluginapi.FailContextOverflow, pluginapi.FailNetwork, pluginapi.FailProtocol, pluginapi.FailEmpty,
		pluginapi.FailTruncated, pluginapi.FailExhausted, pluginapi.FailInternal:
		return k
	default:
		r.Fail("unknown error kind " + string(k))
		return ""
	}
}
