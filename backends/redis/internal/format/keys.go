package format

import (
	"strings"

	"github.com/loophost/loophost/host/store"
)

// Record is the key of the hash that is the whole record of k, under prefix. As it is
// one key, a Cluster keeps it on one node, and a commit is one write to it.
func Record(prefix string, k store.Key) string {
	return prefix + ":record:" + string(k.Kind) + ":" + Escape(k.ID)
}

// Index is the key of the sorted set that lists the ids of a kind.
func Index(prefix string, kind store.Kind) string { return prefix + ":index:" + string(kind) }

// RecordPattern is the SCAN pattern that the key of every record of a kind matches.
func RecordPattern(prefix string, kind store.Kind) string {
	return glob(prefix) + ":record:" + string(kind) + ":*"
}

// ParseRecord is the key of the record that lives at name, if one of kind could.
func ParseRecord(prefix string, kind store.Kind, name string) (store.Key, bool) {
	escaped, ok := strings.CutPrefix(name, prefix+":record:"+string(kind)+":")
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

// Escape writes an id so that it can be typed at a terminal and holds no brace, which
// would mean something to a Cluster: letters, digits, '-', '_' and '.' stay, any other byte becomes
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

// The numbered fields of a record.
func EntryField(seq uint64) string     { return "e:" + Number(seq) }      // a log entry
func UnitField(revision uint64) string { return "u:" + Number(revision) } // what made a revision
func TurnField(turn uint64) string     { return "o:" + Number(turn) }     // an acquire or a release
