package wasm

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestRopeReadsAsItsJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 5)
		head, tail := piece.Draw(t, "head"), piece.Draw(t, "tail")
		items := rapid.SliceOfN(piece, 0, 6).Draw(t, "items")
		want := bytes.Join([][]byte{head, bytes.Join(items, []byte{','}), tail}, nil)
		r := newRope(head, items, tail)
		if r.size != int64(len(want)) {
			t.Fatalf("got size %d, want %d", r.size, len(want))
		}
		for range rapid.IntRange(1, 20).Draw(t, "reads") {
			off := rapid.Int64Range(-2, int64(len(want))+2).Draw(t, "offset")
			dst := make([]byte, rapid.IntRange(0, 9).Draw(t, "length"))
			n := r.readAt(dst, off)
			var rest []byte
			if off >= 0 && off < int64(len(want)) {
				rest = want[off:]
			}
			if exp := rest[:min(len(rest), len(dst))]; !bytes.Equal(dst[:n], exp) {
				t.Fatalf("%d bytes at %d: got %q, want %q", len(dst), off, dst[:n], exp)
			}
		}
	})
}

func TestEmptyRope(t *testing.T) {
	var r rope
	if n := r.readAt(make([]byte, 3), 0); n != 0 || r.size != 0 {
		t.Errorf("got %d bytes of %d", n, r.size)
	}
}
