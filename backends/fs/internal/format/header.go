package format

import (
	"bytes"
	"fmt"
	"strconv"
)

// Filler is the byte that fills space written ahead. A frame never holds two in
// a row, so a run of them inside one is space that was never overwritten.
const Filler = '\n'

// Blank are the bytes that space without a frame may hold: Filler, and NUL where
// a power loss left the length of a file and not what was written to it. A frame
// holds no NUL.
const Blank = "\n\x00"

// Kind is what a frame does.
type Kind string

// The frames of a journal. Create and Tombstone stand first and nowhere else.
const (
	Create    Kind = "create"    // birth and first commit
	Commit    Kind = "commit"    // one commit
	Never     Kind = "never"     // one commit id that can't apply any more
	Acquire   Kind = "acquire"   // a new fence
	Release   Kind = "release"   // no fence
	Delete    Kind = "delete"    // the record ended
	Tombstone Kind = "tombstone" // all that is left of a deleted record
)

func (k Kind) known() bool {
	switch k {
	case Create, Commit, Never, Acquire, Release, Delete, Tombstone:
		return true
	}
	return false
}

// Header is the first line of a frame.
type Header struct {
	Kind    Kind
	At      int64  // offset of the frame in its file
	Rev     uint64 // revision of the record with this frame
	Log     uint64 // length of the log with this frame
	Body    int64  // bytes that follow the header
	Chain   string // store.Chain with this frame
	Prev    uint32 // Sum of the header before; 0 for the first
	BodySum uint32
	Sum     uint32 // this header's own checksum; set by AppendTo and ParseHeader
}

// End is the offset behind the frame.
func (h Header) End() int64 { return h.At + LineLen + h.Body }

// HeaderStart is how every header begins.
const HeaderStart = `{"frame":"`

// AppendTo appends the header's line and sets Sum.
func (h *Header) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = append(append(dst, HeaderStart...), h.Kind...)
	dst = strconv.AppendInt(append(dst, `","at":`...), h.At, 10)
	dst = strconv.AppendUint(append(dst, `,"rev":`...), h.Rev, 10)
	dst = strconv.AppendUint(append(dst, `,"log":`...), h.Log, 10)
	dst = strconv.AppendInt(append(dst, `,"body":`...), h.Body, 10)
	dst = append(append(dst, `,"chain":"`...), h.Chain...)
	dst = appendSum(append(dst, `","prev":"`...), h.Prev)
	dst = appendSum(append(dst, `","bodysum":"`...), h.BodySum)
	dst, h.Sum = seal(append(dst, '"'), start)
	return dst
}

// ParseHeader decodes one header line of LineLen bytes.
func ParseHeader(b []byte) (Header, error) {
	text, sum, err := unseal(b)
	if err != nil {
		return Header{}, err
	}
	f := &fields{b: text}
	var h Header
	f.literal(HeaderStart)
	h.Kind = Kind(f.until('"'))
	f.literal(`","at":`)
	h.At = f.int(f.until(','))
	f.literal(`,"rev":`)
	h.Rev = f.uint(f.until(','), 10, 64)
	f.literal(`,"log":`)
	h.Log = f.uint(f.until(','), 10, 64)
	f.literal(`,"body":`)
	h.Body = f.int(f.until(','))
	f.literal(`,"chain":"`)
	h.Chain = f.until('"')
	f.literal(`","prev":"`)
	h.Prev = uint32(f.uint(f.until('"'), 16, 32))
	f.literal(`","bodysum":"`)
	h.BodySum = uint32(f.uint(f.until('"'), 16, 32))
	h.Sum = sum
	if f.bad || !h.Kind.known() || h.At < 0 || h.Body < 0 || h.Body > MaxBody || len(h.Chain) > 64 {
		return Header{}, fmt.Errorf("%w: it is no header", errLine)
	}
	again := h
	if !bytes.Equal(again.AppendTo(nil), b) {
		return Header{}, fmt.Errorf("%w: it is not in canonical form", errLine)
	}
	return h, nil
}
