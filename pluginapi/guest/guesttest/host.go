// Package guesttest calls a plugin's functions from plain Go tests, through the
// same reading and writing that happens in a WebAssembly module, with a host in
// memory.
//
//	h := &guesttest.Host{Config: `{"pattern": "DONE"}`}
//	d, err := h.Hook(plugin, pluginapi.AfterRound, pluginapi.RoundEndDoc{…})
//
// It is not the sandbox: a plugin has the test's own clock, files and network.
package guesttest

import (
	"bytes"
	"maps"
	"time"

	"github.com/loophost/loophost/pluginapi"
)

// Host is a host in memory. The zero value has no configuration, an empty
// key-value store and no deadline. It serves one call at a time.
type Host struct {
	Config   string            // JSON; "": none
	KV       map[string]string // entries; what a call puts is here once the call succeeded
	DenyKV   bool              // the capability kv is not granted
	Deadline time.Duration     // of each call; 0: none

	// Logs are the lines logged so far.
	Logs []Line
	// BytesRead is how many bytes of its input the last call looked at.
	BytesRead int

	input, output, failed, reply []byte
	staged                       map[string]string
}

// Line is one line of a plugin's log.
type Line struct {
	Level int32
	Text  string
}

// InputRead implements guest.Host.
func (h *Host) InputRead(p []byte, off int) int {
	if off < 0 || off > len(h.input) {
		return 0
	}
	n := copy(p, h.input[off:])
	h.BytesRead = max(h.BytesRead, off+n)
	return n
}

// OutputWrite implements guest.Host.
func (h *Host) OutputWrite(p []byte) { h.output = append(h.output, p...) }

// ErrorWrite implements guest.Host.
func (h *Host) ErrorWrite(p []byte) { h.failed = append(h.failed, p...) }

// Log implements guest.Host.
func (h *Host) Log(level int32, p []byte) {
	h.Logs = append(h.Logs, Line{Level: level, Text: string(p)})
}

// ReplyRead implements guest.Host.
func (h *Host) ReplyRead(p []byte, off int) int {
	if off < 0 || off > len(h.reply) {
		return 0
	}
	return copy(p, h.reply[off:])
}

// DeadlineMS implements guest.Host.
func (h *Host) DeadlineMS() int32 {
	if h.Deadline == 0 {
		return -1
	}
	return int32(h.Deadline.Milliseconds())
}

// HostCall implements guest.Host.
func (h *Host) HostCall(op pluginapi.HostOp, request []byte) int32 {
	h.reply = nil
	switch op {
	case pluginapi.HostConfigGet:
		h.reply = []byte(h.Config)
	case pluginapi.HostKVGet, pluginapi.HostKVPut:
		if h.DenyKV {
			return int32(pluginapi.HostDenied)
		}
		if op == pluginapi.HostKVPut {
			return h.put(request)
		}
		v, ok := h.staged[string(request)]
		if !ok {
			return int32(pluginapi.HostNotFound)
		}
		h.reply = []byte(v)
	default:
		return int32(pluginapi.HostUnsupported)
	}
	return int32(len(h.reply))
}

func (h *Host) put(request []byte) int32 {
	key, value, ok := bytes.Cut(request, []byte{0})
	switch {
	case !ok || len(key) == 0:
		return int32(pluginapi.HostInvalid)
	case len(key) > pluginapi.MaxKVKeyBytes, len(value) > pluginapi.MaxKVValueBytes:
		return int32(pluginapi.HostTooLarge)
	case len(value) == 0:
		delete(h.staged, string(key))
		return 0
	}
	if _, have := h.staged[string(key)]; !have && len(h.staged) >= pluginapi.MaxKVEntries {
		return int32(pluginapi.HostTooLarge)
	}
	h.staged[string(key)] = string(value)
	return 0
}

// begin prepares a call.
func (h *Host) begin(input []byte) {
	h.input, h.output, h.failed, h.BytesRead = input, nil, nil, 0
	h.staged = maps.Clone(h.KV)
	if h.staged == nil {
		h.staged = map[string]string{}
	}
}
