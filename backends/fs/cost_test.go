package fs

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/host/store"
)

// costs counts what is asked of journals, and what is changed on the disk.
type costs map[string]int

type costlyFile struct {
	disk.File
	c costs
}

func (f costlyFile) ReadAt(b []byte, off int64) (int, error) {
	f.c["read of the journal"]++
	return f.File.ReadAt(b, off)
}

func (f costlyFile) Size() (int64, error) {
	f.c["size of the journal"]++
	return f.File.Size()
}

func (c costs) Record(change disk.Change) { c[string(change.Kind)]++ }

func TestACommitReadsOnceWritesOnceAndFlushesOnce(t *testing.T) {
	c := costs{}
	s, err := open(Config{Dir: scratch(t)}, c)
	wantKind(t, "open", err, nil)
	defer func() { wantKind(t, "close", s.Close(), nil) }()
	s.wrap = func(f disk.File) disk.File { return costlyFile{f, c} }
	last := must[store.Ack](t)(s.Create(t.Context(), key, commit(store.Mark{}, "{}")))
	f, _ := acquire(t, s, key, claim("me"))
	for n := range 8 { // too few for an index entry or for more space
		clear(c)
		last = must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(last.Mark, `{"a":1}`, `{"b":2}`)))
		if want := (costs{"read of the journal": 1, string(disk.Wrote): 1, string(disk.SyncedPart): 1}); !maps.Equal(c, want) {
			t.Errorf("commit %d costs %v, want %v", n, c, want)
		}
	}
}

func TestTheBufferOfAFrameIsUsedAgainUnlessItIsLarge(t *testing.T) {
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	last := first.Mark
	for _, c := range []struct {
		name  string
		bytes int
		kept  bool
	}{{"a small frame", 100, true}, {"a large one", 2 * keptBuffer, false}, {"a small one again", 100, true}} {
		last = must[store.Ack](t)(s.Commit(t.Context(), key, f, commit(last, "{}", string(filler(int64(c.bytes)))))).Mark
		if kept := cap(s.records[key].buf) > 0; kept != c.kept || cap(s.records[key].buf) > keptBuffer {
			t.Errorf("%s: kept a buffer of %d bytes, want one kept: %t", c.name, cap(s.records[key].buf), c.kept)
		}
	}
}

// Whoever posts a signal may die before it rings: whoever posts it again rings.
func TestASignalThatDidNotRingIsHeardWhenItIsPostedAgain(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	ack := must[store.Ack](t)(s.Commit(ctx, key, f, commit(first.Mark, "1")))
	folder := filepath.Join(s.desc.Location, folderPath(key))
	wantKind(t, "put the signal there", os.WriteFile(filepath.Join(folder, signalName(f.Run, store.SignalStop)), []byte(`{"reason":"enough"}`), 0o600), nil)
	other := openStore(t, s.desc.Location)
	wantKind(t, "post it again", other.Signal(ctx, key, store.Signal{Kind: store.SignalStop, Run: f.Run}), nil)
	for n := range 2 { // also where the mailbox need not be read again
		ack = must[store.Ack](t)(s.Commit(ctx, key, f, commit(ack.Mark, "2")))
		if len(ack.Signals) != 1 || ack.Signals[0].Reason != "enough" {
			t.Errorf("commit %d after it: got signals %+v, want the stop", n, ack.Signals)
		}
	}
	g, rec := acquire(t, s, key, force(claim("other")))
	if ack = must[store.Ack](t)(s.Commit(ctx, key, g, commit(rec.Mark, "3"))); len(ack.Signals) > 0 {
		t.Errorf("the next run got %+v, want nothing", ack.Signals)
	}
}

// A signal also reaches the holder of an older lock than the poster knows, and the
// other way round.
func TestASignalIsHeardWhicheverLockItsPosterKnows(t *testing.T) {
	for _, made := range []string{"before the poster looked", "after it looked"} {
		t.Run("a newer lock made "+made, func(t *testing.T) {
			ctx := t.Context()
			s, first := newRecordHere(t)
			f, _ := acquire(t, s, key, claim("me"))
			other := openStore(t, s.desc.Location)
			if made == "after it looked" {
				must[store.Record](t)(other.Load(ctx, key))
			}
			newer := filepath.Join(s.desc.Location, folderPath(key), lockName(2))
			wantKind(t, "make a newer lock", os.WriteFile(newer, nil, 0o600), nil)
			wantKind(t, "signal", other.Signal(ctx, key, store.Signal{Kind: store.SignalCancel, Run: f.Run}), nil)
			if ack := must[store.Ack](t)(s.Commit(ctx, key, f, commit(first.Mark, "1"))); len(ack.Signals) != 1 {
				t.Errorf("got signals %+v, want the cancel", ack.Signals)
			}
		})
	}
}

// Until somebody uses a newer lock, what is written under the older one counts;
// from then on it does not.
func TestANewerLockCountsFromWhenItIsUsed(t *testing.T) {
	ctx := t.Context()
	s, first := newRecordHere(t)
	f, _ := acquire(t, s, key, claim("me"))
	slow := hold(t, s.desc.Location, key)
	folder := filepath.Join(s.desc.Location, folderPath(key))
	wantKind(t, "make a newer lock", os.WriteFile(filepath.Join(folder, lockName(2)), nil, 0o600), nil)
	ack, err := slow.commit(f, commit(first.Mark, "written under the older lock"))
	wantKind(t, "a commit while nobody uses the newer lock", err, nil)
	r := newRecord(openStore(t, s.desc.Location), key)
	defer func() { wantKind(t, "close", r.close(), nil) }()
	wantKind(t, "use the newer lock", r.begin(ctx, time.Minute), nil)
	if r.number != 2 || r.st.mark() != ack.Mark {
		t.Errorf("lock %d has %+v, want lock 2 with %+v", r.number, r.st.mark(), ack.Mark)
	}
	_, err = slow.commit(f, commit(ack.Mark, "late"))
	wantKind(t, "a commit after it was used", err, store.ErrUnknownOutcome)
}
