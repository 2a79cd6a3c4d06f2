package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/pluginapi"
)

// withheldObjective stands for an objective whose rewriting hook did not let it pass.
const withheldObjective = "[withheld: a before_prompt hook ended the run]"

// objective is what the loop is started with. early are the signals that came
// while hooks decided on it; a cancel among them cuts the hooks short (L-17).
func (d *driver) objective(ctx context.Context) (text string, early []loop.Event, err error) {
	d.prompt.text = d.spec.Objective
	if !d.chain.MayMutate(pluginapi.BeforePrompt) {
		return d.spec.Objective, nil, nil
	}
	hctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		var err error
		text, err = d.rewriteObjective(hctx)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil && hctx.Err() != nil {
				err = fmt.Errorf("%w before the loop was started: %w", ErrCancelled, err)
			}
			return text, early, err
		case <-d.s.mail.wake:
			for _, sig := range d.s.mail.take() {
				early = append(early, signalEvent(sig))
				if sig.Kind == store.SignalCancel {
					cancel(errInterrupted)
				}
			}
		}
	}
}

// rewriteObjective runs the first before-prompt chain ahead of the start, where one
// of its hooks may rewrite: the start checkpoint stores the objective, and an
// original that a hook rewrites is never stored. The decision itself takes effect
// at the first admission, in its order (L-7).
func (d *driver) rewriteObjective(ctx context.Context) (string, error) {
	if err := d.s.lease.hold(ctx); err != nil {
		return "", err
	}
	info := pluginapi.LoopInfo{Status: string(loop.Running), MaxIterations: uint32(d.spec.Iterations), MaxTotalRounds: uint32(d.spec.Rounds)}
	d.prompt.ran = true
	doc, err := json.Marshal(pluginapi.PromptDoc{Text: d.spec.Objective})
	if err != nil {
		return "", err
	}
	v, err := d.chain.Run(ctx, d.env(info), pluginapi.BeforePrompt, doc)
	if err != nil {
		return "", err
	}
	if err := d.journal(v); err != nil {
		return "", err
	}
	d.prompt.verdict = v
	if v.End != nil {
		return withheldObjective, nil
	}
	var out pluginapi.PromptDoc
	if err := json.Unmarshal(v.Document, &out); err != nil {
		return "", err
	}
	d.prompt.text = out.Text
	if err := loop.CheckBounds(out.Text, d.spec.Iterations, d.spec.Rounds); err != nil {
		return "", fmt.Errorf("a before_prompt hook rewrote the objective: %w", err)
	}
	return out.Text, nil
}

// stageStart prepares what the start checkpoint carries (L-5).
func (d *driver) stageStart() error {
	info := &StartedInfo{
		MaxIterations: uint32(d.spec.Iterations), MaxTotalRounds: uint32(d.spec.Rounds),
		Provider: d.spec.Provider.Info(), Model: d.spec.Model, Demo: d.spec.Demo,
	}
	for _, h := range d.spec.Hooks {
		info.Hooks = append(info.Hooks, h.Info())
	}
	for _, t := range d.spec.Tools {
		info.Tools = append(info.Tools, t.Info())
	}
	d.s.setHead(func(h *Head) {
		h.Run = &RunInfo{
			Provider: info.Provider.Name, ProviderDigest: info.Provider.Digest, Model: d.spec.Model,
			Demo: d.spec.Demo, OnceKey: d.spec.OnceKey, Started: d.s.host.now(),
		}
	})
	if err := d.s.closeCalls(unknownEffect); err != nil {
		return err
	}
	_, err := d.s.append(Entry{Type: EntryStarted, Started: info})
	return err
}

// stageCheckpoint adds the entries that belong to a checkpoint itself.
func (d *driver) stageCheckpoint(e loop.Effect) error {
	switch e.Checkpoint {
	case loop.CheckpointAdmission:
		return d.stageAdmission(e.NewIteration)
	case loop.CheckpointBoundary:
		return d.s.closeCalls(notStarted)
	case loop.CheckpointEnding:
		if err := d.s.closeCalls(notStarted); err != nil {
			return err
		}
		d.noteEnding()
	case loop.CheckpointMirror:
		d.noteEnding()
	}
	return nil
}

func (d *driver) stageAdmission(newIteration bool) error {
	state := d.m.State()
	if newIteration {
		if _, err := d.s.append(Entry{Type: EntryIteration, Iteration: state.IterationsStarted}); err != nil {
			return err
		}
	}
	messages := d.injected
	if newIteration {
		messages = append(messages, pluginapi.Message{Role: pluginapi.RoleUser, Text: d.prompt.text})
	}
	d.injected = nil
	for i := range messages {
		if _, err := d.s.append(Entry{Type: EntryMessage, Message: &messages[i]}); err != nil {
			return err
		}
	}
	_, err := d.s.append(Entry{Type: EntryRound, Iteration: state.IterationsStarted, Round: state.RoundsStarted})
	return err
}

// noteEnding keeps an ending under its once key.
func (d *driver) noteEnding() {
	d.s.setHead(func(h *Head) { h.noteOnce(d.s.ID(), d.s.mark.Revision+1) })
}

func notStarted(pluginapi.ToolCall) (pluginapi.ResultStatus, string) {
	return pluginapi.ResultNotStarted, "the run ended before this call was started"
}

// env is what the hooks of one chain may know and use.
func (d *driver) env(info pluginapi.LoopInfo) plugin.Env {
	return plugin.Env{Session: d.sessionInfo(), Loop: info, KV: d.openKV}
}

// openKV stages a plugin's entries for one call; what is kept travels with the next commit.
func (d *driver) openKV(name string) (plugin.KV, func(keep bool)) {
	staged := d.s.conv.stage(name)
	return staged, func(keep bool) {
		if !keep {
			return
		}
		for _, e := range staged.entries(name) {
			if _, err := d.s.append(e); err != nil {
				d.s.host.cfg.Logger.Error("a plugin's key-value entry could not be encoded", "session_id", d.s.ID(), "plugin", name, "error", err)
			}
		}
	}
}

// journal adds a verdict's records to the next commit, and its texts to what the
// next admission injects.
func (d *driver) journal(v plugin.Verdict) error {
	for i := range v.Records {
		if _, err := d.s.append(Entry{Type: EntryHook, Hook: &v.Records[i]}); err != nil {
			return err
		}
		if v.Records[i].Fault != "" {
			d.s.host.cfg.Logger.Warn("a hook failed", "session_id", d.s.ID(), "plugin", v.Records[i].Plugin, "point", string(v.Records[i].Point), "fault", v.Records[i].Fault)
		}
	}
	for _, in := range v.Injected {
		d.injected = append(d.injected, injection(in))
	}
	return nil
}

// injection is the message that adds a hook's text to the conversation.
func injection(in plugin.Injection) pluginapi.Message {
	return pluginapi.Message{Role: pluginapi.RoleUser, Origin: "hook:" + in.Plugin, Text: in.Text}
}
