package format

import (
	"strings"

	"github.com/loophost/loophost/host/store"
)

// Names are the Redis keys of one record. The braces are a hash tag, so that a
// Cluster keeps them in one slot:
//
//	loophost:{session:my%20session}         a hash: state, head, fence, mailbox
//	loophost:{session:my%20session}:log     a stream: one element per log entry
//	loophost:{session:my%20session}:history a stream: one element per change
type Names struct {
	Record, Log, History string
}

// NamesOf are the keys of k under prefix.
func NamesOf(prefix string, k store.Key) Names {
	record := prefix + ":{" + string(k.Kind) + ":" + Escape(k.ID) + "}"
	return Names{Record: record, Log: record + ":log", History: record + ":history"}
}

// Index is the key of the sorted set that lists the ids of a kind.
func Index(prefix string, kind store.Kind) string { return prefix + ":index:" + string(kind) }

// RecordPattern is the SCAN pattern that every record's key matches; the keys of logs
// and histories match it too.
func RecordPattern(prefix string, kind store.Kind) string {
	return glob(prefix) + ":{" + string(kind) + ":*}"
}

// ParseRecord is the key of the record that lives at name, if one of kind could.
func ParseRecord(prefix string, kind store.Kind, name string) (store.Key, bool) {
	escaped, ok := strings.CutPrefix(name, prefix+":{"+string(kind)+":")
	if !ok {
		return store.Key{}, false
	}
	escaped, ok = strings.CutSuffix(escaped, "}")
	if !ok {
		return store.Key{}, false
	}
	id, ok := Unescape(escaped)
	k := store.Key{Kind: kind, ID: id}
	return k, ok && k.Validate() == nil
}

const hexDigits = "0123456789ABCDEF"

// plain reports whether Escape leaves b as it is.
func plain(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.'
}

// Escape writes an id so that it can stand between the braces of a hash tag and be
// typed at a terminal: letters, digits, '-', '_' and '.' stay, any other byte becomes
// %XX. Two ids never become the same.
func Escape(id string) string {
	n := 0
	for i := range len(id) {
		if !plain(id[i]) {
			n++
		}
	}
	if n == 0 {
		return id
	}
	out := make([]byte, 0, len(id)+2*n)
	for i := range len(id) {
		if b := id[i]; plain(b) {
			out = append(out, b)
		} else {
			out = append(out, '%', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	return string(out)
}

// Unescape reads what Escape wrote, and nothing else.
func Unescape(s string) (string, bool) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case plain(b):
		case b != '%' || i+2 >= len(s):
			return "", false
		default:
			hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			if b = byte(hi<<4 | lo); plain(b) {
				return "", false
			}
			i += 2
		}
		out = append(out, b)
	}
	return string(out), true
}

// glob quotes what a SCAN pattern would take for a wildcard.
func glob(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[]\^-`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// All are the keys in the order in which scripts take them.
func (n Names) All() []string { return []string{n.Record, n.Log, n.History} }
