package format

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/loophost/loophost/host/store"
)

// UnitKind says what a unit of the history records.
type UnitKind string

// The kinds. Create, commit and never make a revision; acquire and release don't.
const (
	Create  UnitKind = "create"
	Commit  UnitKind = "commit"
	Never   UnitKind = "never" // Resolve decided that the commit never applies (S-4)
	Acquire UnitKind = "acquire"
	Release UnitKind = "release"
)

// Unit is one change of a record, as the history keeps it.
type Unit struct {
	Kind    UnitKind    `json:"kind"`
	Birth   store.Birth `json:"birth"`
	ID      string      `json:"id,omitempty"`      // of the commit
	Content string      `json:"content,omitempty"` // store.ContentHash, in hex
	Before  string      `json:"before,omitempty"`  // the chain that it extends: the link to the unit before (S-7)
	Chain   string      `json:"chain,omitempty"`   // the chain with it
	Entries uint64      `json:"entries,omitempty"` // appended to the log
	LogSum  string      `json:"log_sum,omitempty"` // over the sums of these entries
	HeadSum string      `json:"head_sum,omitempty"`
	Level   store.Level `json:"level,omitempty"` // reached when it was written
	Owner   string      `json:"owner,omitempty"` // who wrote
	Run     string      `json:"run,omitempty"`
	Gen     string      `json:"generation,omitempty"` // of an acquire or a release
	Force   bool        `json:"force,omitempty"`      // a forced acquire
	Time    string      `json:"time"`                 // by the writer's clock, RFC 3339; for people
}

// Encode gives the unit's text and its checksum at revision.
func (u Unit) Encode(revision uint64) (text, sum string, err error) {
	b, err := json.Marshal(u)
	if err != nil {
		return "", "", fmt.Errorf("unit: %w", err)
	}
	return string(b), unitSum(revision, b), nil
}

// ParseUnit reads what Encode wrote at revision.
func ParseUnit(revision uint64, text, sum string) (Unit, error) {
	if got := unitSum(revision, []byte(text)); got != sum {
		return Unit{}, fmt.Errorf("unit of revision %d: it has the checksum %s, and %q was written", revision, got, sum)
	}
	var u Unit
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		return Unit{}, fmt.Errorf("unit of revision %d: %w", revision, err)
	}
	switch u.Kind {
	case Create, Commit, Never:
		if u.ID == "" || u.Chain == "" {
			return Unit{}, fmt.Errorf("unit of revision %d: no commit id or no chain", revision)
		}
	case Acquire, Release:
	default:
		return Unit{}, fmt.Errorf("unit of revision %d: the kind %q is unknown", revision, u.Kind)
	}
	return u, nil
}

// ContentText is a content hash as a unit holds it.
func ContentText(h [32]byte) string { return hex.EncodeToString(h[:]) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumText(crc uint32) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], crc)
	return hex.EncodeToString(b[:])
}

func unitSum(revision uint64, text []byte) string {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], revision)
	return sumText(crc32.Update(crc32.Update(0, castagnoli, place[:]), castagnoli, text))
}

// HeadSum is the checksum of a head at its place: birth and revision of the commit
// that wrote it.
func HeadSum(birth store.Birth, revision uint64, head []byte) string {
	return EntrySum(birth, revision, 0, head)
}

// EntrySum is the checksum of a log entry at its place: the commit's birth and
// revision, and its number within the commit, from 1.
func EntrySum(birth store.Birth, revision, number uint64, data []byte) string {
	var place [24]byte
	binary.BigEndian.PutUint64(place[:], uint64(birth))
	binary.BigEndian.PutUint64(place[8:], revision)
	binary.BigEndian.PutUint64(place[16:], number)
	return sumText(crc32.Update(crc32.Update(0, castagnoli, place[:]), castagnoli, data))
}

// LogSum is the checksum over the sums of a commit's entries, in order.
func LogSum(sums []string) string {
	crc := uint32(0)
	for _, s := range sums {
		crc = crc32.Update(crc, castagnoli, []byte(s))
	}
	return sumText(crc)
}

// EntryMeta is what stands beside an entry's data: its number in the commit and its sum.
func EntryMeta(number uint64, sum string) string { return Number(number) + " " + sum }

// Entry is one element of the log stream.
type Entry struct {
	Entry  store.Entry
	Number uint64 // within its commit, from 1
	Sum    string
}

// ParseEntry reads an element of the log of a record with birth and verifies it.
func ParseEntry(birth store.Birth, id, meta string, data []byte) (Entry, error) {
	seq, revision, err := ParseID(id)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Entry: store.Entry{Seq: seq, Revision: revision, Data: data}}
	for i := range len(meta) {
		if meta[i] != ' ' {
			continue
		}
		if e.Number, err = ParseNumber(meta[:i]); err != nil {
			return Entry{}, fmt.Errorf("entry %d: %w", seq, err)
		}
		e.Sum = meta[i+1:]
		if got := EntrySum(birth, revision, e.Number, data); got != e.Sum {
			return Entry{}, fmt.Errorf("entry %d: it has the checksum %s, and %q was written", seq, got, e.Sum)
		}
		return e, nil
	}
	return Entry{}, errors.New("entry " + Number(seq) + ": no checksum stands beside it")
}
