package fs

import (
	"errors"
	"fmt"
	"io"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// A journal is read in pieces that grow: one header is cheap, and so is a long run.
const (
	firstRead = 8 << 10
	mostRead  = 256 << 10
)

// damage is a place in a journal that does not hold what was written.
type damage struct {
	at    int64
	whole bool // the frame's checksums are right: it can't be a torn write
	err   error
}

func (d *damage) Error() string { return fmt.Sprintf("at byte %d: %v", d.at, d.err) }
func (d *damage) Unwrap() error { return d.err }

// frames reads a journal forward through one buffer.
type frames struct {
	f    io.ReaderAt
	size int64
	buf  []byte
	off  int64 // offset of buf[0]
	step int64 // how much was read last; 0: nothing yet
}

// bytes gives n bytes at off, which must lie within size. They are valid until the next call.
func (r *frames) bytes(off int64, n int64) ([]byte, error) {
	if off < r.off || off+n > r.off+int64(len(r.buf)) {
		r.step = min(max(firstRead, 2*r.step), mostRead)
		want := min(max(n, r.step), r.size-off)
		if int64(cap(r.buf)) < want {
			r.buf = make([]byte, want)
		}
		r.buf, r.off = r.buf[:want], off
		got, err := r.f.ReadAt(r.buf, off)
		r.buf = r.buf[:got]
		if int64(got) < n {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return r.buf[off-r.off:][:n], nil
}

// header reads the header at off. more is false at the end of the frames: at
// the end of the file, or at blank space.
func (r *frames) header(off int64) (h format.Header, more bool, err error) {
	if off >= r.size {
		return h, false, nil
	}
	first, err := r.bytes(off, 1)
	if err != nil {
		return h, false, err
	}
	if isBlank(first) {
		return h, false, nil
	}
	if r.size-off < format.LineLen {
		return h, true, &damage{at: off, err: errors.New("the file ends within a header")}
	}
	b, err := r.bytes(off, format.LineLen)
	if err != nil {
		return h, true, err
	}
	if h, err = format.ParseHeader(b); err != nil {
		return h, true, &damage{at: off, err: err}
	}
	if h.At != off {
		return h, true, &damage{at: off, whole: true, err: fmt.Errorf("%w: it was written for byte %d", errLink, h.At)}
	}
	return h, true, nil
}

// next reads the whole frame at off.
func (r *frames) next(off int64) (h format.Header, m format.Meta, parts [][]byte, more bool, err error) {
	h, more, err = r.header(off)
	if err != nil || !more {
		return h, m, nil, more, err
	}
	if h.End() > r.size {
		return h, m, nil, true, &damage{at: off, err: errors.New("the file ends within a frame")}
	}
	body, err := r.bytes(off+format.LineLen, h.Body)
	if err != nil {
		return h, m, nil, true, err
	}
	if format.Sum(body) != h.BodySum {
		return h, m, nil, true, &damage{at: off, err: errors.New("the checksum of the frame's body does not match")}
	}
	if m, parts, err = format.DecodeBody(body); err != nil {
		return h, m, nil, true, &damage{at: off, whole: true, err: err}
	}
	return h, m, parts, true, nil
}

// replay applies the frames behind st.end. before, if not nil, sees the state
// before each commit frame. The error is a *damage, or of reading.
func (st *state) replay(key store.Key, f io.ReaderAt, size int64, before func(*state)) error {
	r := &frames{f: f, size: size}
	for {
		h, m, parts, more, err := r.next(st.end)
		if err != nil || !more {
			return err
		}
		if before != nil && h.Kind == format.Commit {
			before(st)
		}
		if err := st.apply(key, h, m, parts); err != nil {
			return &damage{at: h.At, whole: true, err: err}
		}
	}
}
