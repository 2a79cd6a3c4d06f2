package format

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// LineLen is the length of every fixed-width line, its newline included.
const LineLen = 256

// sealLen is the length of what seal appends: ,"sum":"xxxxxxxx"} and a newline.
const sealLen = 19

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum that every unit carries (CRC32C).
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// errLine says that a fixed-width line is not what was written.
var errLine = errors.New("the line is damaged")

// seal pads the line that starts at dst[start:] with blanks and ends it with its
// own checksum, which it also gives.
func seal(dst []byte, start int) ([]byte, uint32) {
	if n := len(dst) - start; n < LineLen-sealLen {
		dst = append(dst, blanks[n:]...)
	}
	sum := Sum(dst[start:])
	return appendSeal(dst, sum), sum
}

// blanks is the longest padding that a line can need.
const blanks = "                                                            " + // 60
	"                                                            " +
	"                                                            " +
	"                                                         " // 57

func appendSeal(dst []byte, sum uint32) []byte {
	return append(appendSum(append(dst, `,"sum":"`...), sum), "\"}\n"...)
}

// appendSum appends a checksum in eight hex digits.
func appendSum(dst []byte, sum uint32) []byte {
	return hex.AppendEncode(dst, binary.BigEndian.AppendUint32(make([]byte, 0, 4), sum))
}

// unseal checks a line's checksum and gives it with the text before the padding.
func unseal(b []byte) (text []byte, sum uint32, err error) {
	if len(b) != LineLen {
		return nil, 0, fmt.Errorf("%w: it has %d bytes, not %d", errLine, len(b), LineLen)
	}
	body := b[:LineLen-sealLen]
	sum = Sum(body)
	if want := appendSeal(make([]byte, 0, sealLen), sum); !bytes.Equal(b[LineLen-sealLen:], want) {
		return nil, 0, fmt.Errorf("%w: its checksum does not match", errLine)
	}
	return bytes.TrimRight(body, " "), sum, nil
}

// fields walks the text of a line; the first mismatch sticks.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) literal(s string) {
	if f.bad = f.bad || !bytes.HasPrefix(f.b, []byte(s)); !f.bad {
		f.b = f.b[len(s):]
	}
}

func (f *fields) until(end byte) string {
	i := bytes.IndexByte(f.b, end)
	if f.bad = f.bad || i < 0; f.bad {
		return ""
	}
	s := string(f.b[:i])
	f.b = f.b[i:]
	return s
}

func (f *fields) uint(s string, base, bits int) uint64 {
	n, err := strconv.ParseUint(s, base, bits)
	f.bad = f.bad || err != nil
	return n
}

func (f *fields) int(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	f.bad = f.bad || err != nil
	return n
}
