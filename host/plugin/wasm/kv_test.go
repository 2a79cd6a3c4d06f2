package wasm

import (
	"maps"

	"github.com/loophost/loophost/host/plugin"
)

// mapKV is a store for tests: staged entries over committed ones.
type mapKV map[string]string

var _ plugin.KV = mapKV{}

func (m mapKV) Get(key string) ([]byte, bool) {
	v, ok := m[key]
	return []byte(v), ok
}

func (m mapKV) Put(key string, value []byte) error {
	if len(value) == 0 {
		delete(m, key)
		return nil
	}
	if len(m) == 3 && m[key] == "" {
		return plugin.ErrKVLimit
	}
	m[key] = string(value)
	return nil
}

func (m mapKV) copy() mapKV { return maps.Clone(m) }
