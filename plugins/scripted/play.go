package main

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
)

// player answers provider calls from the script. It holds no state: the step
// follows from the call's ordinal, which the front of the request carries.
type player struct {
	config guest.Cached[script]
	sleep  func(time.Duration)
}

// sleep waits in the host, which ends it when the call's deadline comes or the
// call is cancelled. Without the capability clock it returns at once.
func sleep(d time.Duration) { time.Sleep(d) }

func (p *player) complete(c *guest.ProviderCall) error {
	s, err := p.config.Get(c.Call)
	if err != nil {
		return &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: err.Error()}
	}
	info, err := c.Info()
	if err != nil {
		return err
	}
	st, err := s.at(info.Ordinal)
	if err != nil {
		return err
	}
	if st.delayMS > 0 {
		p.sleep(time.Duration(st.delayMS) * time.Millisecond)
	}
	return st.play(c, info.Ordinal)
}

// at is the step of the n-th provider call, from 1.
func (s script) at(n uint64) (step, error) {
	count := uint64(len(s.steps))
	switch {
	case n == 0:
		return step{}, &pluginapi.Failure{Kind: pluginapi.FailInvalidRequest, Message: "the request has no call.ordinal; it counts from 1"}
	case n <= count:
		return s.steps[n-1], nil
	case s.repeat:
		return s.steps[(n-1)%count], nil
	}
	return step{}, &pluginapi.Failure{
		Kind: pluginapi.FailExhausted,
		Message: "the script has " + plural(len(s.steps), "step") + " and this is provider call " + strconv.FormatUint(n, 10) +
			`; add steps or set "repeat": true`,
	}
}

// plural is "1 step", "2 steps".
func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

func (st step) play(c *guest.ProviderCall, ordinal uint64) error {
	if err := c.Reasoning(st.reasoning); err != nil {
		return err
	}
	for _, piece := range pieces(st.text, int(st.chunks)) {
		if err := c.Text(piece); err != nil {
			return err
		}
	}
	for i, call := range st.calls {
		err := c.ToolCall(pluginapi.ToolCall{ID: callID(ordinal, i+1), Name: call.name, Arguments: call.arguments})
		if err != nil {
			return err
		}
	}
	if st.usage != nil {
		if err := c.Usage(*st.usage); err != nil {
			return err
		}
	}
	if st.failure != nil {
		return st.failure
	}
	return c.Finish(st.finishReason())
}

func (st step) finishReason() pluginapi.Finish {
	switch {
	case st.finish != "":
		return st.finish
	case len(st.calls) > 0:
		return pluginapi.FinishToolCalls
	}
	return pluginapi.FinishStop
}

// callID names a tool call within an execution; the host makes it unique in the session.
func callID(ordinal uint64, n int) string {
	return "call-" + strconv.FormatUint(ordinal, 10) + "-" + strconv.Itoa(n)
}

// pieces cuts text into n pieces of about the same number of characters, never
// inside one. A text of fewer characters has as many pieces as characters.
func pieces(text string, n int) []string {
	runes := utf8.RuneCountInString(text)
	n = min(max(n, 1), runes)
	out := make([]string, 0, n)
	for i := range n {
		// The runes are dealt out so that sizes differ by one at most.
		want := runes*(i+1)/n - runes*i/n
		end := 0
		for range want {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}
