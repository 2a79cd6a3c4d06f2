package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/loophost/loophost/backends/fs/internal/format"
)

// sector is the unit that a disk writes whole or not at all.
const sector = 512

// tail is what stands behind the last whole frame.
type tail struct {
	from, to int64 // of the bytes that are not blank; from == to: nothing
}

// lastUsed finds the end of the last byte at or after from that is not blank,
// and whether a whole header stands anywhere behind from.
func lastUsed(f io.ReaderAt, from, size int64) (used int64, whole bool, err error) {
	const chunk = 1 << 20
	used = from
	// Chunks overlap, so that a header across a border is seen whole.
	for off := from; off < size; off += chunk {
		b := make([]byte, min(chunk+format.LineLen, size-off))
		n, err := f.ReadAt(b, off)
		if err != nil && (!errors.Is(err, io.EOF) || n == 0) {
			return 0, false, err
		}
		b = b[:n]
		if text := bytes.TrimRight(b, format.Blank); len(text) > 0 {
			used = max(used, off+int64(len(text)))
		}
		for i := 0; ; i++ {
			j := bytes.Index(b[i:], []byte(format.HeaderStart))
			if j < 0 || i+j+format.LineLen > len(b) {
				break
			}
			i += j
			at := off + int64(i)
			if at == from {
				continue
			}
			if h, err := format.ParseHeader(b[i : i+format.LineLen]); err == nil && h.At == at {
				whole = true
			}
		}
	}
	return used, whole, nil
}

// judge says what a bad tail at from is: a torn write (nil), or damage (S-7).
// bad is what replay found there; nil if it saw blank space only.
func judge(f io.ReaderAt, from, size int64, clean bool, bad *damage) (tail, error) {
	used, whole, err := lastUsed(f, from, size)
	if err != nil {
		return tail{}, err
	}
	t := tail{from: from, to: used}
	if t.from == t.to {
		return t, nil
	}
	if bad == nil {
		bad = &damage{at: from, err: errors.New("there is something behind the last frame")}
	}
	switch {
	case bad.whole:
		return t, bad
	case clean:
		return t, &damage{at: bad.at, err: fmt.Errorf("%w; the record was released cleanly, so it is no torn write", bad.err)}
	case whole:
		return t, &damage{at: bad.at, err: fmt.Errorf("%w; there is a whole frame behind it, so it is no torn write", bad.err)}
	}
	end := max(used, from+format.LineLen)
	if b := make([]byte, format.LineLen); size-from >= format.LineLen {
		if _, err := f.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return t, err
		}
		if h, err := format.ParseHeader(b); err == nil {
			end = h.End()
		}
	}
	if end > size {
		// Space is always written and flushed before a frame goes into it.
		return t, &damage{at: bad.at, err: fmt.Errorf("%w; the file was cut short", bad.err)}
	}
	torn, err := unwritten(f, from, end)
	if err != nil {
		return t, err
	}
	if !torn {
		return t, &damage{at: bad.at, err: fmt.Errorf("%w; every sector of it was written, so it is no torn write", bad.err)}
	}
	return t, nil
}

// unwritten reports whether a sector's share of the frame in [from, end) is still
// blank. A whole frame begins with no blank byte and never holds two in a row, so
// only a share of one byte at the very end says nothing: that is a line break anyway.
func unwritten(f io.ReaderAt, from, end int64) (bool, error) {
	b := make([]byte, sector)
	for off := from; off < end; {
		n := min(sector-off%sector, end-off)
		if _, err := f.ReadAt(b[:n], off); err != nil {
			return false, err
		}
		if isBlank(b[:n]) && (n > 1 || off == from || b[0] != format.Filler) {
			return true, nil
		}
		off += n
	}
	return false, nil
}
