package format

import (
	"bytes"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

// IndexLine is one entry of the sparse index: the record's state right before
// the commit frame at offset At.
type IndexLine struct {
	At    int64
	Rev   uint64
	Log   uint64
	Birth store.Birth
	Key   string // KeySum of the record
	Prev  uint32 // Sum of the header before
	Chain string
}

// AppendTo appends the entry's line.
func (l IndexLine) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst, _ = seal(fmt.Appendf(dst, `{"at":%d,"rev":%d,"log":%d,"birth":%d,"key":"%s","prev":"%08x","chain":"%s"`,
		l.At, l.Rev, l.Log, int64(l.Birth), l.Key, l.Prev, l.Chain), start)
	return dst
}

// ParseIndexLine decodes one line of LineLen bytes.
func ParseIndexLine(b []byte) (IndexLine, error) {
	text, _, err := unseal(b)
	if err != nil {
		return IndexLine{}, err
	}
	f := &fields{b: text}
	var l IndexLine
	f.literal(`{"at":`)
	l.At = f.int(f.until(','))
	f.literal(`,"rev":`)
	l.Rev = f.uint(f.until(','), 10, 64)
	f.literal(`,"log":`)
	l.Log = f.uint(f.until(','), 10, 64)
	f.literal(`,"birth":`)
	l.Birth = store.Birth(f.int(f.until(',')))
	f.literal(`,"key":"`)
	l.Key = f.until('"')
	f.literal(`","prev":"`)
	l.Prev = uint32(f.uint(f.until('"'), 16, 32))
	f.literal(`","chain":"`)
	l.Chain = f.until('"')
	f.literal(`"`)
	if f.bad || l.At < 0 || len(l.Key) > KeySumLen || len(l.Chain) > 64 || !bytes.Equal(l.AppendTo(nil), b) {
		return IndexLine{}, fmt.Errorf("%w: it is no index entry", errLine)
	}
	return l, nil
}
