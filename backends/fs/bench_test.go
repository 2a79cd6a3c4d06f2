package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/bench"
)

// BenchmarkCommit measures a commit of 4 KiB into sessions of several lengths, by
// several writers at once, each with a session of its own, against its floor:
// each appends the same bytes, the whole frame, to a file of its own with one
// fdatasync.
func BenchmarkCommit(b *testing.B) {
	for _, messages := range []int{10, 1_000, 100_000} {
		for _, writers := range []int{1, 16, 64} {
			if messages > 10 && writers > 1 {
				continue // the length does not depend on the writers
			}
			b.Run(fmt.Sprintf("messages=%d/writers=%d", messages, writers), func(b *testing.B) {
				s := openStore(b, b.TempDir())
				ours, theirs := make([]bench.Side, writers), make([]bench.Side, writers)
				for i := range writers {
					ours[i] = sessionOf(b, s, fmt.Sprint("session-", i), messages)
					theirs[i] = appends(b, fmt.Sprint(i))
				}
				bench.Against(b, max(200, 20*writers), bench.Workers(ours), bench.Workers(theirs))
			})
		}
	}
}

// BenchmarkCommitAge is the 100,000-message session beside the 10-message one.
func BenchmarkCommitAge(b *testing.B) {
	s := openStore(b, b.TempDir())
	bench.Against(b, 200, sessionOf(b, s, "old", 100_000), sessionOf(b, s, "young", 10))
}

// delta is a head and one entry, 4 KiB together, JSON as a host writes it.
func delta() (head, entry []byte) {
	head = fmt.Appendf(nil, `{"schema":1,"filling":%q}`, strings.Repeat("h", 474))
	entry = fmt.Appendf(nil, `{"type":"message","message":{"role":"assistant","text":%q}}`, strings.Repeat("m", 3538))
	return head, entry
}

// sessionOf makes an owned session with a log of n messages, and commits to it.
func sessionOf(b *testing.B, s *Store, id string, n int) bench.Side {
	b.Helper()
	k := store.SessionKey(id)
	last := must[store.Ack](b)(s.Create(b.Context(), k, commit(store.Mark{}, "{}")))
	f, _, err := s.Acquire(b.Context(), k, claim("me"))
	wantKind(b, "acquire", err, nil)
	const batch = 500
	for left := n; left > 0; left -= batch {
		entries := make([][]byte, min(left, batch))
		for i := range entries {
			entries[i] = []byte(`{"type":"message","message":{"role":"user","text":"of the usual length, more or less"}}`)
		}
		last = must[store.Ack](b)(s.Commit(b.Context(), k, f, store.Commit{ID: uuid.NewString(), After: last.Mark, Head: []byte("{}"), Entries: entries}))
	}
	head, entry := delta()
	return func(steps int) error {
		for range steps {
			var err error
			last, err = s.Commit(b.Context(), k, f, store.Commit{ID: uuid.NewString(), After: last.Mark, Head: head, Entries: [][]byte{entry}})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// appends is the floor: a frame's bytes at the end of a plain file, and a flush.
func appends(b *testing.B, name string) bench.Side {
	b.Helper()
	f := must[*os.File](b)(os.OpenFile(filepath.Join(b.TempDir(), name), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600))
	b.Cleanup(func() { wantKind(b, "close", f.Close(), nil) })
	head, entry := delta()
	h := format.Header{Kind: format.Commit}
	m := format.Meta{
		Commit: uuid.NewString(), Content: strings.Repeat("0", 64), Level: "power", Time: time.Now().Format(time.RFC3339Nano),
		Fence: &store.Fence{Owner: "me", Run: uuid.NewString(), Generation: uuid.NewString(), Birth: 1},
	}
	frame := must[[]byte](b)(format.Encode(&h, m, head, entry))
	if !json.Valid(entry) || len(head)+len(entry) != 4<<10 || bytes.Contains(frame, []byte(`"parts":"jb`)) {
		b.Fatalf("the delta has %d bytes, want 4 KiB of JSON", len(head)+len(entry))
	}
	d := disk.OSFile{File: f}
	return func(steps int) error {
		for range steps {
			if _, err := f.Write(frame); err != nil {
				return err
			}
			if err := d.Flush(); err != nil {
				return err
			}
		}
		return nil
	}
}

// BenchmarkOpenLong measures what a handle that knows nothing yet needs to load
// a record of 100,000 commits.
func BenchmarkOpenLong(b *testing.B) {
	s := openStore(b, b.TempDir())
	_, last := writeLong(b, s, 100_000, 200)
	var took []float64
	for b.Loop() {
		forgetAll(s)
		start := time.Now()
		rec, err := s.Load(b.Context(), key)
		took = append(took, float64(time.Since(start).Microseconds())/1000)
		if err != nil || rec.Mark != last {
			b.Fatalf("got %+v, %v, want %+v", rec.Mark, err, last)
		}
	}
	b.ReportMetric(bench.Median(took), "ms/open")
}
