package host

import (
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// stagedKV is a plugin's key-value store during one call: what the call puts is
// seen by the call alone until it is kept.
type stagedKV struct {
	base map[string][]byte
	puts map[string][]byte // an empty value deletes
	keys []string          // of puts, in the order of the first put
}

// Get implements plugin.KV.
func (s *stagedKV) Get(key string) ([]byte, bool) {
	if v, ok := s.puts[key]; ok {
		return v, len(v) > 0
	}
	v, ok := s.base[key]
	return v, ok
}

// Put implements plugin.KV.
func (s *stagedKV) Put(key string, value []byte) error {
	if key == "" || len(key) > pluginapi.MaxKVKeyBytes || len(value) > pluginapi.MaxKVValueBytes {
		return plugin.ErrKVLimit
	}
	if len(value) > 0 {
		if _, ok := s.Get(key); !ok && s.size() >= pluginapi.MaxKVEntries {
			return plugin.ErrKVLimit
		}
	}
	if _, ok := s.puts[key]; !ok {
		s.keys = append(s.keys, key)
	}
	s.puts[key] = append([]byte(nil), value...)
	return nil
}

func (s *stagedKV) size() int {
	n := len(s.base)
	for key, value := range s.puts {
		_, had := s.base[key]
		switch {
		case had && len(value) == 0:
			n--
		case !had && len(value) > 0:
			n++
		}
	}
	return n
}

// stage opens plugin name's entries for one call.
func (c *conversation) stage(name string) *stagedKV {
	return &stagedKV{base: c.kv[name], puts: map[string][]byte{}}
}

// entries are the log entries that make what was put durable.
func (s *stagedKV) entries(name string) []Entry {
	out := make([]Entry, 0, len(s.keys))
	for _, key := range s.keys {
		out = append(out, Entry{Type: EntryKV, KV: &KVEntry{Plugin: name, Key: key, Value: s.puts[key]}})
	}
	return out
}
