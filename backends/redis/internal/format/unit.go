package format

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/jsonobject"
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
	Content string      `json:"content,omitempty"` // store.ContentHash in hex (S-3)
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

// Encode gives the unit as it is stored at a place, a revision or the number of a turn:
// its checksum, a space, and JSON. That is written by hand: it is made for each commit.
func (u Unit) Encode(place uint64) (text string, err error) {
	o := jsonobject.Open(make([]byte, sumBytes+1, 640))
	o.Text("kind", string(u.Kind))
	o.Text("birth", u.Birth.String())
	o.TextIf("id", u.ID)
	o.TextIf("content", u.Content)
	o.TextIf("before", u.Before)
	o.TextIf("chain", u.Chain)
	o.NumberIf("entries", u.Entries)
	o.TextIf("log_sum", u.LogSum)
	o.TextIf("head_sum", u.HeadSum)
	if u.Level > 0 {
		o.Text("level", u.Level.String())
	}
	o.TextIf("owner", u.Owner)
	o.TextIf("run", u.Run)
	o.TextIf("generation", u.Gen)
	if u.Force {
		o.Bool("force", true)
	}
	o.Text("time", u.Time)
	b, err := o.Close()
	if err != nil {
		return "", fmt.Errorf("unit: %w", err)
	}
	copy(b, unitSum(place, b[sumBytes+1:]))
	b[sumBytes] = ' '
	return string(b), nil
}

// sumBytes is the length of a checksum's text.
const sumBytes = 8

// ParseUnit reads what Encode wrote at a place.
func ParseUnit(place uint64, stored string) (Unit, error) {
	sum, text, ok := strings.Cut(stored, " ")
	if !ok {
		return Unit{}, fmt.Errorf("unit %d: no checksum stands before it", place)
	}
	if got := unitSum(place, []byte(text)); got != sum {
		return Unit{}, fmt.Errorf("unit %d: it has the checksum %s, and %q was written", place, got, sum)
	}
	var u Unit
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		return Unit{}, fmt.Errorf("unit %d: %w", place, err)
	}
	switch u.Kind {
	case Create, Commit, Never:
		if u.ID == "" || u.Chain == "" {
			return Unit{}, fmt.Errorf("unit %d: no commit id or no chain", place)
		}
	case Acquire, Release:
	default:
		return Unit{}, fmt.Errorf("unit %d: the kind %q is unknown", place, u.Kind)
	}
	return u, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumText(crc uint32) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], crc)
	return hex.EncodeToString(b[:])
}

func unitSum(number uint64, text []byte) string {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], number)
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
