package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// Waits between provider attempts that name none: doubled each time, ± half.
const firstBackoff = 500 * time.Millisecond

// baseRequest is the part of a provider request that stays the same in a run.
func (d *driver) baseRequest() pluginapi.ProviderRequest {
	return pluginapi.ProviderRequest{
		Model: d.spec.Model, System: d.spec.System, MaxTokens: d.spec.MaxTokens, Options: d.spec.Options, Tools: d.tools.specs,
	}
}

// callProvider makes the admitted round's call, with its retries (L-18), and
// runs the after-provider hooks on the answer.
func (d *driver) callProvider(ctx context.Context, info pluginapi.LoopInfo) []loop.Event {
	withhold := d.chain.MayMutate(pluginapi.AfterProvider)
	var result *pluginapi.ProviderResult
	var signals []loop.Event
	for attempt := uint32(1); ; attempt++ {
		var err error
		result, err = d.attempt(ctx, info, attempt, withhold)
		if result != nil {
			signals = append(signals, d.count(result.Usage)...) // also of an answer that is not taken: its tokens are spent
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return interrupted
		}
		wait, again := d.retryWait(err, attempt)
		if !again {
			d.cause = err
			return append(signals, loop.Event{Kind: loop.EvProviderFailed, Reason: fmt.Sprintf("provider %s, attempt %d: %v", d.spec.Provider.Info().Name, attempt, err)})
		}
		d.tell(Event{Type: EventRetryScheduled, Retry: &Retry{
			Attempt: attempt, WaitMS: wait.Milliseconds(), Until: d.s.host.now().Add(wait), Error: err.Error(),
		}})
		d.notify(ctx, info, "retry", fmt.Sprintf("attempt %d failed: %v; the next one is in %v", attempt, err, wait))
		if !pause(ctx, wait, d.hurry) {
			return interrupted
		}
		if err := d.s.lease.hold(ctx); err != nil {
			if ctx.Err() != nil {
				return interrupted
			}
			return []loop.Event{{Kind: loop.EvFenced}}
		}
	}
	v, s, end := d.ask(ctx, info, pluginapi.AfterProvider, pluginapi.AnswerDoc{Message: result.Message, Usage: result.Usage})
	if end != nil {
		return append(signals, end...)
	}
	signals = append(signals, s...)
	if v.Mutated {
		var out pluginapi.AnswerDoc
		if err := json.Unmarshal(v.Document, &out); err != nil {
			return d.hostFailed(err)
		}
		result.Message = out.Message
		if err := d.checkAnswer(result); err != nil { // its call ids must be new to the session, too
			d.cause = err
			return append(signals, loop.Event{Kind: loop.EvProviderFailed, Reason: fmt.Sprintf("the answer that the after_provider hooks wrote: %v", err)})
		}
	}
	if withhold && result.Message.Text != "" {
		d.tell(Event{Type: EventToken, Token: &Token{Text: result.Message.Text}})
	}
	d.round = roundState{message: result.Message}
	if len(result.Message.ToolCalls) > 0 {
		return append(signals, loop.Event{Kind: loop.EvAnswered, ToolCalls: true})
	}
	if err := d.appendAnswer(); err != nil {
		return d.hostFailed(err)
	}
	return append(signals, loop.Event{Kind: loop.EvAnswered})
}

// appendAnswer adds an answer without tool calls to the next commit.
func (d *driver) appendAnswer() error {
	seq, err := d.s.append(Entry{Type: EntryMessage, Message: &d.round.message})
	if err != nil {
		return err
	}
	d.finalText = d.round.message.Text
	d.s.setHead(func(h *Head) { h.Run.FinalSeq = seq })
	return nil
}

// attempt is one call of the provider.
func (d *driver) attempt(ctx context.Context, info pluginapi.LoopInfo, attempt uint32, withhold bool) (*pluginapi.ProviderResult, error) {
	req := &plugin.Request{ProviderRequest: d.baseRequest()}
	if d.request != nil {
		req.ProviderRequest = *d.request
	} else {
		n := len(d.s.conv.messages)
		req.Messages, req.Encoded, req.EncodedBytes = d.s.conv.messages[:n:n], d.s.conv.encoded[:n:n], d.s.conv.bytes
	}
	d.ordinal++
	req.Call = pluginapi.CallInfo{Ordinal: d.ordinal, Iteration: info.IterationsStarted, Round: info.RoundsStarted, Attempt: attempt}
	emit := func(c pluginapi.Chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !withhold && c.Text != "" && (c.Type == pluginapi.ChunkText || c.Type == pluginapi.ChunkReasoning) {
			d.tell(Event{Type: EventToken, Token: &Token{Text: c.Text, Reasoning: c.Type == pluginapi.ChunkReasoning}})
		}
		return nil
	}
	session, done := d.callSession(d.spec.Provider.Info().Name)
	result, err := d.spec.Provider.Complete(ctx, session, req, emit)
	switch {
	case err != nil:
	case result == nil:
		err = &pluginapi.Failure{Kind: pluginapi.FailEmpty, Message: "the provider gave no answer"}
	default:
		err = d.checkAnswer(result)
	}
	done(err == nil)
	return result, err
}

// callSession is what one call of a provider or tool may know and use.
func (d *driver) callSession(name string) (plugin.Session, func(keep bool)) {
	kv, done := d.openKV(name)
	return plugin.Session{Info: d.sessionInfo(), KV: kv}, done
}

// checkAnswer refuses what is no answer and makes the rest storable: valid
// UTF-8, arguments that are JSON, call ids that are unique in the session.
func (d *driver) checkAnswer(r *pluginapi.ProviderResult) error {
	m := &r.Message
	switch {
	case r.Finish == pluginapi.FinishLength:
		return &pluginapi.Failure{Kind: pluginapi.FailTruncated, Message: "the answer was cut by the length limit"}
	case len(m.ToolCalls) == 0 && strings.TrimSpace(m.Text) == "":
		return &pluginapi.Failure{Kind: pluginapi.FailEmpty, Message: "the answer is empty"}
	}
	m.Role, m.Origin, m.Result = pluginapi.RoleAssistant, "", nil
	m.Text = strings.ToValidUTF8(m.Text, "\uFFFD")
	m.Reasoning = strings.ToValidUTF8(m.Reasoning, "\uFFFD")
	taken := map[string]bool{}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		c.ID = d.s.conv.uniqueCallID(strings.ToValidUTF8(c.ID, "\uFFFD"), taken)
		c.Name = strings.ToValidUTF8(c.Name, "\uFFFD")
		c.Arguments = storable(c.Arguments)
	}
	return nil
}

// storable makes arguments JSON: absent ones are an empty object, broken ones a
// string of what was there, which no tool takes.
func storable(args json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(args)) == 0 {
		return json.RawMessage("{}")
	}
	var compact bytes.Buffer
	if json.Compact(&compact, args) == nil {
		return compact.Bytes()
	}
	quoted, err := json.Marshal(string(args))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return quoted
}

// retryWait says whether a failed attempt is tried again, and after how long.
func (d *driver) retryWait(err error, attempt uint32) (time.Duration, bool) {
	failure, ok := errors.AsType[*pluginapi.Failure](err)
	if !ok || !failure.Kind.Retryable() || attempt >= ProviderAttempts {
		return 0, false
	}
	if failure.RetryAfterMS > 0 {
		wait := time.Duration(min(failure.RetryAfterMS, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		return wait, wait <= d.spec.MaxWait
	}
	backoff := firstBackoff << (attempt - 1)
	return min(backoff/2+rand.N(backoff), d.spec.MaxWait), true
}

// pause waits; it answers false where ctx or a stop ended the wait (S-13).
func pause(ctx context.Context, wait time.Duration, hurry <-chan struct{}) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-hurry:
	case <-ctx.Done():
	}
	return false
}

// usageSum adds up the tokens of a run; a count is unknown as soon as one call's is.
type usageSum struct {
	calls   uint64
	in, out uint64
	unknown [2]bool
}

// count adds a call's usage and says whether the token budget is spent. A budget
// that can't be checked is spent: it would bound nothing.
func (d *driver) count(u *pluginapi.Usage) []loop.Event {
	s := &d.usage
	s.calls++
	if u == nil {
		u = &pluginapi.Usage{}
	}
	if s.unknown[0] = s.unknown[0] || u.InputTokens == nil; u.InputTokens != nil {
		s.in += *u.InputTokens
	}
	if s.unknown[1] = s.unknown[1] || u.OutputTokens == nil; u.OutputTokens != nil {
		s.out += *u.OutputTokens
	}
	switch budget := d.spec.MaxTokensTotal; {
	case budget == 0:
		return nil
	case s.unknown[0] || s.unknown[1]:
		return []loop.Event{{Kind: loop.EvBudgetSpent, Code: loop.ReasonTokens, Reason: "the provider does not report its usage, so the token budget can't be kept"}}
	case s.in+s.out >= budget:
		return []loop.Event{{Kind: loop.EvBudgetSpent, Code: loop.ReasonTokens, Reason: fmt.Sprintf("%d of %d tokens are used", s.in+s.out, budget)}}
	}
	return nil
}

// total is nil where nothing is known.
func (s *usageSum) total() *pluginapi.Usage {
	if s.calls == 0 || (s.unknown[0] && s.unknown[1]) {
		return nil
	}
	u := &pluginapi.Usage{}
	if !s.unknown[0] {
		in := s.in
		u.InputTokens = &in
	}
	if !s.unknown[1] {
		out := s.out
		u.OutputTokens = &out
	}
	return u
}
