package scope

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/internal/canon"
)

// snapshotRecordBytes is when a snapshot goes on in another record; the part that
// reaches it is still in this one. A part is at most a little over 5 MiB.
const snapshotRecordBytes = 8 << 20

// snapshotRecord is the head of one record of a snapshot.
type snapshotRecord struct {
	Schema int         `json:"schema"`
	Scope  string      `json:"scope_id"`
	Birth  store.Birth `json:"scope_birth"`
	Seq    uint64      `json:"seq"`
	Record uint64      `json:"record"` // 0 for the first
	SHA256 string      `json:"sha256"` // over the hashes of its entries, in order
}

// snapshotKey names a record of a snapshot. Its length does not depend on the scope's id.
func snapshotKey(id string, birth store.Birth, seq, record uint64) store.Key {
	return store.Key{Kind: KindSnapshot, ID: fmt.Sprintf("%s-%020d-%d", canon.Hash([]byte(id+"\x00"+birth.String())), seq, record)}
}

// hashes is the SHA-256, hex, over hashes in order.
type hashes struct{ all []byte }

func (h *hashes) add(hash string) { h.all = append(append(h.all, hash...), '\n') }
func (h *hashes) sum() string     { return canon.Hash(h.all) }

// snapshotIfDue starts writing a snapshot of now when the command that led there
// from before crossed a bound: as many bytes of log as the snapshot has, or half as
// many again, and so on, since the newest one. So what is written for snapshots is in
// proportion to what was logged, one of many handles writes each, and a failed one
// is tried again later.
func (s *Scope) snapshotIfDue(before *Head, now *view) {
	size := uint64(s.cfg.SnapshotAfter)
	if now.head.Snapshot != nil {
		size = max(size, now.head.Snapshot.Bytes)
	}
	step := max(1, size/2)
	since := now.head.sinceSnapshot()
	if since < size || before.sinceSnapshot()/step == since/step && before.sinceSnapshot() >= size {
		return
	}
	if s.snapshotting.Swap(true) {
		return
	}
	// The caller's own call is counted, so Close is waiting or not begun.
	s.busy.Go(func() {
		defer s.snapshotting.Store(false)
		if err := s.writeSnapshot(now); err != nil {
			s.cfg.Logger.Warn("a scope's snapshot was not written; the next opening reads more of the log", "scope_id", s.binding.ScopeID, "seq", now.head.Seq, "err", err)
		}
	})
}

// writeSnapshot writes v as a snapshot, makes the head point to it, and removes the
// one before.
func (s *Scope) writeSnapshot(v *view) error {
	ctx := context.Background()
	snap, err := s.writeRecords(ctx, v)
	if err != nil {
		return err
	}
	stale, err := s.point(ctx, snap)
	if err != nil || stale == nil {
		return err
	}
	return s.removeSnapshot(ctx, s.binding.ScopeID, v.mark.Birth, *stale)
}

// writeRecords writes the state of v, which nothing refers to yet.
func (s *Scope) writeRecords(ctx context.Context, v *view) (Snapshot, error) {
	snap := Snapshot{Seq: v.head.Seq, Tip: v.head.Tip, LogBytes: v.head.LogBytes}
	var whole hashes
	var parts [][]byte
	size := 0
	flush := func() error {
		var h hashes
		for _, p := range parts {
			h.add(canon.Hash(p))
		}
		whole.add(h.sum())
		head, err := canon.Marshal(snapshotRecord{HeadSchema, s.binding.ScopeID, v.mark.Birth, snap.Seq, snap.Records, h.sum()})
		if err != nil {
			return err
		}
		key := snapshotKey(s.binding.ScopeID, v.mark.Birth, snap.Seq, snap.Records)
		c := store.Commit{ID: uuid.NewString(), Head: head, Entries: parts, Require: s.cfg.Require}
		snap.Records++
		parts, size = nil, 0
		return s.makeRecord(ctx, key, c)
	}
	for part, err := range v.state.Parts() {
		if err != nil {
			return snap, err
		}
		parts = append(parts, part)
		size += len(part)
		snap.Bytes += uint64(len(part))
		if size >= snapshotRecordBytes {
			if err := flush(); err != nil {
				return snap, err
			}
		}
	}
	if len(parts) > 0 {
		if err := flush(); err != nil {
			return snap, err
		}
	}
	snap.SHA256 = whole.sum()
	return snap, nil
}

// point makes the head refer to snap, in a commit of its own without entries. stale
// is what nothing refers to any more: the snapshot before, or snap itself where
// another handle was further; nil: nothing.
func (s *Scope) point(ctx context.Context, snap Snapshot) (stale *Snapshot, err error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	for range 1 + MaxRereads {
		if err := s.writable(); err != nil {
			return nil, err
		}
		v := s.view.Load()
		was := v.head.Snapshot
		switch {
		case was != nil && was.Seq == snap.Seq:
			return nil, nil
		case was != nil && was.Seq > snap.Seq:
			return &snap, nil
		}
		next := &view{state: v.state, head: v.head}
		next.head.Snapshot = &snap
		if err = s.commit(ctx, v, next, nil); !errors.Is(err, store.ErrConflict) {
			return was, err
		}
		if _, err := s.reread(ctx); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// removeSnapshot deletes the records of a snapshot that no head refers to, and that
// no head will: heads only ever move to later ones. An opener that was reading them
// reads the head again.
func (r reader) removeSnapshot(ctx context.Context, id string, birth store.Birth, snap Snapshot) error {
	var errs []error
	for i := range snap.Records {
		errs = append(errs, r.remove(ctx, snapshotKey(id, birth, snap.Seq, i)))
	}
	return errors.Join(errs...)
}

// remove deletes a record that has an owner. One that is gone is no error.
func (r reader) remove(ctx context.Context, key store.Key) error {
	ctx, cancel := r.cfg.bounded(ctx)
	defer cancel()
	f, _, err := r.store.Acquire(ctx, key, store.Claim{Owner: "snapshot removal", Run: uuid.NewString()})
	if err == nil {
		err = r.store.Delete(ctx, key, f)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// snapshot reads and verifies a snapshot.
func (r reader) snapshot(ctx context.Context, b ticket.Binding, birth store.Birth, snap Snapshot) (*ticket.State, error) {
	var builder ticket.Builder
	var whole hashes
	for i := range snap.Records {
		key := snapshotKey(b.ScopeID, birth, snap.Seq, i)
		rec, err := r.record(ctx, key)
		if err != nil {
			return nil, err
		}
		var h hashes
		err = r.entries(ctx, key, 1, rec.LogLength, func(e store.Entry) error {
			h.add(canon.Hash(e.Data))
			return builder.Add(e.Data)
		})
		if err != nil {
			return nil, err
		}
		whole.add(h.sum())
	}
	state, err := builder.State()
	if err != nil {
		return nil, err
	}
	if whole.sum() != snap.SHA256 || state.Seq() != snap.Seq || state.Binding() != b {
		return nil, corrupt(b.ScopeID, fmt.Sprintf("the snapshot at seq %d is not the one that the head names", snap.Seq), nil)
	}
	return state, nil
}

func (r reader) record(ctx context.Context, key store.Key) (store.Record, error) {
	ctx, cancel := r.cfg.bounded(ctx)
	defer cancel()
	return r.store.Load(ctx, key)
}
