package format

import (
	"bytes"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

// Released says that a record was left whole: its journal ends at End, and the
// last header's checksum is Last. While it stands, a bad tail is corruption, not
// a torn write (S-7).
type Released struct {
	Birth store.Birth
	End   int64
	Last  uint32
}

// Encode gives the file's content.
func (r Released) Encode() []byte {
	b, _ := seal(fmt.Appendf(nil, `{"released":"%s","end":%d,"last":"%08x"`, r.Birth, r.End, r.Last), 0)
	return b
}

// ParseReleased decodes the file's content.
func ParseReleased(b []byte) (Released, error) {
	text, _, err := unseal(b)
	if err != nil {
		return Released{}, err
	}
	f := &fields{b: text}
	var r Released
	f.literal(`{"released":`)
	birth := f.until(',')
	f.literal(`,"end":`)
	r.End = f.int(f.until(','))
	f.literal(`,"last":"`)
	r.Last = uint32(f.uint(f.until('"'), 16, 32))
	if f.bad || r.Birth.UnmarshalJSON([]byte(birth)) != nil || !bytes.Equal(r.Encode(), b) {
		return Released{}, fmt.Errorf("%w: it is no release mark", errLine)
	}
	return r, nil
}
