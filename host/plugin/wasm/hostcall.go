package wasm

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// answer does a host call; status 0 means that reply holds. req is guest memory:
// what is kept of it is copied. mu is held.
func (c *call) answer(op pluginapi.HostOp, req []byte) (reply []byte, status pluginapi.HostStatus) {
	switch op {
	case pluginapi.HostConfigGet:
		if len(req) != 0 {
			return nil, pluginapi.HostInvalid
		}
		return c.config, 0
	case pluginapi.HostKVGet:
		return c.kvGet(req)
	case pluginapi.HostKVPut:
		key, value, ok := bytes.Cut(req, []byte{0})
		if !ok {
			return nil, pluginapi.HostInvalid
		}
		return nil, c.kvPut(key, value)
	}
	return nil, pluginapi.HostUnsupported
}

func checkKey(key []byte) pluginapi.HostStatus {
	switch {
	case len(key) > pluginapi.MaxKVKeyBytes:
		return pluginapi.HostTooLarge
	case len(key) == 0, !utf8.Valid(key), bytes.IndexByte(key, 0) >= 0:
		return pluginapi.HostInvalid
	}
	return 0
}

func (c *call) kvGet(key []byte) ([]byte, pluginapi.HostStatus) {
	if c.kv == nil {
		return nil, pluginapi.HostDenied
	}
	if s := checkKey(key); s != 0 {
		return nil, s
	}
	value, ok := c.kv.Get(string(key))
	if !ok {
		return nil, pluginapi.HostNotFound
	}
	return value, 0
}

func (c *call) kvPut(key, value []byte) pluginapi.HostStatus {
	if c.kv == nil {
		return pluginapi.HostDenied
	}
	if s := checkKey(key); s != 0 {
		return s
	}
	if len(value) > pluginapi.MaxKVValueBytes {
		return pluginapi.HostTooLarge
	}
	switch err := c.kv.Put(string(key), bytes.Clone(value)); {
	case err == nil:
		return 0
	case errors.Is(err, plugin.ErrKVLimit):
		return pluginapi.HostTooLarge
	}
	return pluginapi.HostInvalid
}
