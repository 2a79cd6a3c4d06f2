package host_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/loop"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// ended is the head and the log of a session with an ended loop.
func ended(tb testing.TB) (head []byte, entries [][]byte, export []byte) {
	tb.Helper()
	ctx := context.Background()
	st := memstore.New().Open()
	defer st.Close()
	h, err := host.New(host.Config{Store: st, Owner: "fuzz"})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := h.Open(ctx, host.OpenRequest{ID: "s"})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = s.Run(ctx, host.RunSpec{Objective: "do it", Iterations: 1, Rounds: 2, Provider: twoRounds(), OnceKey: "k"})
	if err := errors.Join(err, s.Close(ctx)); err != nil {
		tb.Fatal(err)
	}
	rec, err := st.Load(ctx, store.SessionKey("s"))
	if err != nil {
		tb.Fatal(err)
	}
	page, err := st.ReadLog(ctx, rec.Key, 1, 0)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range page.Entries {
		entries = append(entries, e.Data)
	}
	var out bytes.Buffer
	if err := h.Export(ctx, "s", &out); err != nil {
		tb.Fatal(err)
	}
	return rec.Head, entries, out.Bytes()
}

// What decodes is valid, and says the same again after it was encoded.
func FuzzDecodeHead(f *testing.F) {
	head, _, _ := ended(f)
	f.Add(head)
	fresh, err := host.NewHead(time.Unix(1_900_000_000, 0)).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(fresh)
	child := host.NewHead(time.Unix(1_900_000_000, 0))
	child.Child = newChild()
	ofChild, err := child.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ofChild)
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":1,"created":"2026-01-02T03:04:05Z","loop":{},"runtime":{"status":"idle","execution_id":""},"run":null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := host.DecodeHead(data)
		if err != nil {
			if !errors.Is(err, loop.ErrState) {
				t.Fatalf("got %v, want an error that wraps ErrState", err)
			}
			return
		}
		again, err := h.Encode()
		if err != nil {
			t.Fatalf("a head that decodes does not encode: %v", err)
		}
		h2, err := host.DecodeHead(again)
		if err != nil {
			t.Fatalf("a head that was encoded does not decode: %v", err)
		}
		if d := cmp.Diff(h, h2); d != "" {
			t.Fatalf("a head changes by being stored (-before +after):\n%s", d)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	_, entries, _ := ended(f)
	for _, e := range entries {
		f.Add(e)
	}
	f.Add([]byte(`{"type":"message"}`))
	f.Add([]byte(`{"type":"kv","time":"2026-01-02T03:04:05Z","execution_id":"","generation":"","kv":{"plugin":"p","key":"k","value":""}}`))
	f.Add([]byte(`{"type":"nothing"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := host.DecodeEntry(data)
		if err != nil {
			return
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatalf("an entry that decodes does not encode: %v", err)
		}
		e2, err := host.DecodeEntry(again)
		if err != nil {
			t.Fatalf("an entry that was encoded does not decode: %v\n%s", err, again)
		}
		third, err := e2.Encode()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("an entry changes by being stored (%v):\n%s\n%s", err, again, third)
		}
	})
}

// An import creates a whole session that can be exported again, or nothing.
func FuzzImport(f *testing.F) {
	_, _, export := ended(f)
	f.Add(export)
	f.Add(export[:len(export)/2])
	f.Add(bytes.Replace(export, []byte(`"seq":2`), []byte(`"seq":3`), 1))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := context.Background()
		st := memstore.New().Open()
		defer st.Close()
		h, err := host.New(host.Config{Store: st, Owner: "fuzz"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Import(ctx, bytes.NewReader(data), "s"); err != nil {
			if _, lerr := h.Show(ctx, "s"); !errors.Is(lerr, store.ErrNotFound) {
				t.Fatalf("a refused import (%v) left a session: %v", err, lerr)
			}
			return
		}
		var out bytes.Buffer
		if err := h.Export(ctx, "s", &out); err != nil {
			t.Fatalf("what was imported can't be exported: %v", err)
		}
		if _, err := h.Import(ctx, &out, "t"); err != nil {
			t.Fatalf("what was exported again can't be imported: %v", err)
		}
	})
}
