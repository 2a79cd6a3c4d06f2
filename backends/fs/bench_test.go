package fs

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/host/store"
)

// BenchmarkCommit measures a commit of 4 KiB against its floor, in the same run
// and turn by turn: appending the same bytes to a file and one fdatasync. The
// metric x-floor is the ratio of the two; below 1 is faster than appending.
func BenchmarkCommit(b *testing.B) {
	ctx, dir := b.Context(), b.TempDir()
	s := openStore(b, dir)
	last, err := s.Create(ctx, key, commit(store.Mark{}, "{}"))
	wantKind(b, "create", err, nil)
	f, _, err := s.Acquire(ctx, key, claim("me"))
	wantKind(b, "acquire", err, nil)
	raw, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	wantKind(b, "open", err, nil)
	defer func() { wantKind(b, "close", raw.Close(), nil) }()
	floor := disk.OSFile{File: raw}
	payload := bytes.Repeat([]byte("x"), 2<<10)
	var ours, theirs time.Duration
	frame := bytes.Repeat([]byte("y"), 5<<10)
	for b.Loop() {
		start := time.Now()
		last, err = s.Commit(ctx, key, f, store.Commit{ID: uuid.NewString(), After: last.Mark, Head: payload, Entries: [][]byte{payload}})
		ours += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		if _, err := raw.Write(frame); err != nil {
			b.Fatal(err)
		}
		if err := floor.Flush(); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(start)
	}
	b.ReportMetric(float64(ours)/float64(theirs), "x-floor")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/commit")
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "procs")
}

// BenchmarkOpenLong measures what a handle that knows nothing yet needs to load
// a record of 20,000 commits.
func BenchmarkOpenLong(b *testing.B) {
	s := openStore(b, b.TempDir())
	_, last := writeLong(b, s, 20_000, 200)
	for b.Loop() {
		forgetAll(s)
		rec, err := s.Load(b.Context(), key)
		if err != nil || rec.Mark != last {
			b.Fatalf("got %+v, %v, want %+v", rec.Mark, err, last)
		}
	}
}
