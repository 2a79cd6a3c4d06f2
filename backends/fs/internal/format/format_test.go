package format

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/store"
)

var widest = Header{
	Kind: Tombstone, At: 1<<63 - 1, Rev: 1<<64 - 1, Log: 1<<64 - 1, Body: MaxBody,
	Chain: strings.Repeat("f", 64), Prev: 1<<32 - 1, BodySum: 1<<32 - 1,
}

func TestEveryHeaderFitsItsLine(t *testing.T) {
	for _, h := range []Header{{Kind: Create}, widest} {
		b := h.AppendTo([]byte("before"))[6:]
		if len(b) != LineLen || b[LineLen-1] != Filler || bytes.Count(b, []byte{Filler}) != 1 {
			t.Fatalf("got %d bytes %q, want one line of %d", len(b), b, LineLen)
		}
		got, err := ParseHeader(b)
		if err != nil || got != h {
			t.Errorf("got %+v, %v, want %+v", got, err, h)
		}
	}
}

func TestEveryChangedByteOfALineIsSeen(t *testing.T) {
	lines := map[string][]byte{
		"header":   widest.AppendTo(nil),
		"index":    IndexLine{At: 1 << 40, Rev: 1<<64 - 1, Log: 7, Birth: 1 << 60, Key: strings.Repeat("a", KeySumLen), Prev: 9, Chain: strings.Repeat("0", 64)}.AppendTo(nil),
		"released": Released{Birth: 1 << 60, End: 1 << 40, Last: 7}.Encode(),
	}
	parse := map[string]func([]byte) error{
		"header":   func(b []byte) error { _, err := ParseHeader(b); return err },
		"index":    func(b []byte) error { _, err := ParseIndexLine(b); return err },
		"released": func(b []byte) error { _, err := ParseReleased(b); return err },
	}
	for name, line := range lines {
		if len(line) != LineLen {
			t.Errorf("%s: got %d bytes, want %d", name, len(line), LineLen)
		}
		if err := parse[name](line); err != nil {
			t.Errorf("%s: got %v, want it whole", name, err)
		}
		for i := range line {
			for x := 1; x < 256; x++ {
				b := bytes.Clone(line)
				b[i] ^= byte(x)
				if parse[name](b) == nil {
					t.Errorf("%s: byte %d xor %#x is not seen", name, i, x)
				}
			}
		}
	}
}

func TestAFrameNeverHoldsTwoLineBreaksInARow(t *testing.T) {
	h := Header{Kind: Commit}
	parts := [][]byte{{}, []byte("\n"), []byte("\n\n\n"), []byte(" "), []byte("{\n\n}"), []byte(`{"a": "b"}`), nil}
	b, err := Encode(&h, Meta{Commit: "x"}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte{Filler, Filler}) || b[len(b)-1] != Filler {
		t.Errorf("got %q, want no empty line and a line break at the end", b)
	}
	_, got, err := DecodeBody(b[LineLen:])
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		if !bytes.Equal(got[i], parts[i]) {
			t.Errorf("part %d: got %q, want %q", i, got[i], parts[i])
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(widest.AppendTo(nil))
	f.Add((&Header{Kind: Create}).AppendTo(nil))
	f.Add([]byte(HeaderStart))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err == nil && !bytes.Equal(h.AppendTo(nil), b) {
			t.Errorf("%q is accepted and written as %q", b, h.AppendTo(nil))
		}
		// The same bytes with a checksum that fits: the fields are met as well.
		if len(b) < LineLen-sealLen {
			line, _ := seal(bytes.Clone(b), 0)
			if h, err := ParseHeader(line); err == nil && !bytes.Equal(h.AppendTo(nil), line) {
				t.Errorf("%q is accepted and written as %q", line, h.AppendTo(nil))
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, parts := range [][][]byte{nil, {[]byte("{}")}, {[]byte("\xff"), []byte("\n"), {}}} {
		h := Header{Kind: Commit}
		b, err := Encode(&h, Meta{Commit: "x", Fence: &store.Fence{Birth: 1, Owner: "<me>"}}, parts...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[LineLen:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, parts, err := DecodeBody(b)
		if err != nil {
			return
		}
		h := Header{Kind: Commit}
		again, err := Encode(&h, m, parts...)
		if err != nil {
			t.Fatalf("%q is accepted and can't be written: %v", b, err)
		}
		sameMeta(t, m)
		m2, parts2, err := DecodeBody(again[LineLen:])
		m.Parts, m2.Parts = "", "" // base64 of what is JSON is read, and never written
		if d := cmp.Diff(m, m2); err != nil || d != "" {
			t.Errorf("%q comes back with %v as another meta line (-first +again):\n%s", b, err, d)
		}
		for i := range parts {
			if !bytes.Equal(parts[i], parts2[i]) {
				t.Errorf("part %d: got %q, want %q", i, parts2[i], parts[i])
			}
		}
	})
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte("{}"), []byte("\xff\n"))
	f.Add([]byte(`"\u0000"`), []byte(" 1 "))
	f.Fuzz(func(t *testing.T, head, entry []byte) {
		h := Header{Kind: Commit}
		b, err := Encode(&h, Meta{}, head, entry)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte{Filler, Filler}) {
			t.Errorf("%q holds an empty line", b)
		}
		_, parts, err := DecodeBody(b[LineLen:])
		if err != nil || !bytes.Equal(parts[0], head) || !bytes.Equal(parts[1], entry) {
			t.Errorf("got %q, %v, want %q and %q", parts, err, head, entry)
		}
	})
}

func FuzzIndexLine(f *testing.F) {
	f.Add(IndexLine{At: 1, Key: "k", Chain: "c"}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, line := range [][]byte{b, sealed(b)} {
			if l, err := ParseIndexLine(line); err == nil && !bytes.Equal(l.AppendTo(nil), line) {
				t.Errorf("%q is accepted and written as %q", line, l.AppendTo(nil))
			}
		}
	})
}

func FuzzReleased(f *testing.F) {
	f.Add(Released{Birth: 1, End: 2, Last: 3}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, line := range [][]byte{b, sealed(b)} {
			if r, err := ParseReleased(line); err == nil && !bytes.Equal(r.Encode(), line) {
				t.Errorf("%q is accepted and written as %q", line, r.Encode())
			}
		}
	})
}

// sealed gives b a fitting checksum, if it is short enough for a line.
func sealed(b []byte) []byte {
	if len(b) >= LineLen-sealLen {
		return b
	}
	line, _ := seal(bytes.Clone(b), 0)
	return line
}

func FuzzKey(f *testing.F) {
	f.Add([]byte(`{"kind":"session","id":"a"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ParseKey(b, Folder(store.SessionKey("a")))
		if err == nil && k != store.SessionKey("a") {
			t.Errorf("%q is accepted as %v", b, k)
		}
	})
}

func FuzzMailbox(f *testing.F) {
	b, err := EncodeSignal(store.Signal{Kind: store.SignalStop, Run: "r", Reason: "<why>", Time: time.Unix(1, 2).UTC()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := ParseSignal(b, store.SignalCancel, "run")
		if s.Kind != store.SignalCancel || s.Run != "run" || len(s.Reason) > store.MaxReasonBytes {
			t.Errorf("%q gives %+v, want the signal that the name says", b, s)
		}
	})
}

func FuzzOwner(f *testing.F) {
	b, err := Owner{PID: 1, Host: "h"}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		o := ParseOwner(b)
		if _, err := o.Encode(); err != nil {
			t.Errorf("%q gives %+v, which can't be written: %v", b, o, err)
		}
	})
}
