package format

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/loophost/loophost/host/store"
)

// Entry is one log entry with what is stored beside it.
type Entry struct {
	store.Entry
	Number uint64 // within its commit, from 1
	Sum    string
}

// EncodeEntry gives an entry as it is stored: revision, number within the commit and
// checksum, then the data as it is.
//
//	12 1 89abcdef
//	{"the":"entry"}
func EncodeEntry(revision, number uint64, sum string, data []byte) []byte {
	b := make([]byte, 0, len(data)+32)
	b = strconv.AppendUint(b, revision, 10)
	b = strconv.AppendUint(append(b, ' '), number, 10)
	b = append(append(append(b, ' '), sum...), '\n')
	return append(b, data...)
}

// ParseEntry reads what is stored at seq of a record with birth, and verifies it.
func ParseEntry(birth store.Birth, seq uint64, stored []byte) (Entry, error) {
	line, data, ok := bytes.Cut(stored, []byte("\n"))
	words := bytes.Split(line, []byte(" "))
	if !ok || len(words) != 3 {
		return Entry{}, fmt.Errorf("entry %d: no checksum stands before it", seq)
	}
	e := Entry{Entry: store.Entry{Seq: seq, Data: data}, Sum: string(words[2])}
	var err error
	if e.Revision, err = ParseNumber(string(words[0])); err == nil {
		e.Number, err = ParseNumber(string(words[1]))
	}
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", seq, err)
	}
	if got := EntrySum(birth, e.Revision, e.Number, data); got != e.Sum {
		return Entry{}, fmt.Errorf("entry %d: it has the checksum %s, and %q was written", seq, got, e.Sum)
	}
	return e, nil
}

// Settled is what is remembered of a commit id.
type Settled struct {
	Applied   bool // false: it never applies
	Revision  uint64
	LogLength uint64
}

// ParseSettled reads "+revision length", or "-revision length" for never.
func ParseSettled(s string) (Settled, error) {
	if s == "" || s[0] != '+' && s[0] != '-' {
		return Settled{}, fmt.Errorf("commit id: %q does not say what became of it", s)
	}
	out := Settled{Applied: s[0] == '+'}
	revision, length, _ := bytes.Cut([]byte(s[1:]), []byte(" "))
	var err error
	if out.Revision, err = ParseNumber(string(revision)); err == nil {
		out.LogLength, err = ParseNumber(string(length))
	}
	return out, err
}
