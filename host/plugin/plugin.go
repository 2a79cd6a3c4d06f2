package plugin

import (
	"context"
	"time"

	"github.com/loophost/loophost/pluginapi"
)

// Info names a loaded plugin, for the journal and for people.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Digest is "sha256:" and the hex SHA-256 of the bytes that are executed; for
	// Go code of the embedding program "" .
	Digest    string `json:"digest"`
	Isolation string `json:"isolation"` // "wasm", "process", "none"
}

// Session is what a call may know and use of the session it is for.
type Session struct {
	Info pluginapi.SessionInfo
	// KV is the plugin's key-value store within the session; nil: not available.
	// What a call puts becomes durable with the call's result or not at all.
	KV KV
}

// KV is a plugin's key-value entries within one session. Get and Put are called
// by one call at a time.
type KV interface {
	// Get is the value of key; ok is false where there is none. The caller must not change the bytes.
	Get(key string) (value []byte, ok bool)
	// Put stages value under key until the call's result is taken; an empty value
	// deletes. It answers ErrKVLimit over a bound of pluginapi.
	Put(key string, value []byte) error
}

// Provider answers with a model's next message.
type Provider interface {
	Info() Info
	// Complete makes one attempt. It passes each piece to emit as it arrives; an
	// error of emit ends the call with that error. It returns the whole answer, or
	// a *pluginapi.Failure (typed), a *Fault, or ctx's error. It returns soon
	// after ctx ends.
	Complete(ctx context.Context, s Session, req *Request, emit func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error)
}

// Request is a provider request. Messages is the session's whole history and is
// shared with the host: read it, never change it.
type Request struct {
	pluginapi.ProviderRequest
	// Encoded holds the JSON of each message, in step with Messages, so that a
	// transport need not encode the history again for every call; nil: not available.
	Encoded [][]byte
	// EncodedBytes is the sum of Encoded's lengths, for a transport to announce the
	// request's size without a walk over the history; 0: not known.
	EncodedBytes int64
}

// Hook is one plugin's hooks.
type Hook interface {
	Info() Info
	// Points are its subscriptions.
	Points() []pluginapi.HookDecl
	// Run asks for a decision. Errors are a *Fault, a *pluginapi.Failure (a fault
	// too), or ctx's error. in.Document is the point's document in JSON; it is
	// shared with the host: read it, never change it.
	Run(ctx context.Context, s Session, in *pluginapi.HookInput) (pluginapi.Decision, CallStats, error)
}

// Tool is one plugin's tools.
type Tool interface {
	Info() Info
	Specs() []pluginapi.ToolSpec
	// Call runs one tool. A *pluginapi.Failure or *Fault becomes an error result
	// for the model; ctx's error means that the effect is unknown.
	Call(ctx context.Context, s Session, call pluginapi.ToolCall) (pluginapi.ToolOutput, CallStats, error)
}

// CallStats is what a call cost; recorded in the journal. Zero values are unknown.
type CallStats struct {
	Duration   time.Duration
	BytesIn    int64
	BytesOut   int64
	PeakMemory int64    // bytes
	Grants     []string // capabilities in force for the call
}
