package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// step is how much space is written ahead of the frames.
const step = 256 << 10

// piece is how much of it is written at once. A kernel may keep what one write brought
// as one unit (ext4 does since Linux 6.16) and go through all of its blocks again for
// each frame that is written there: with one write for a step, that was a third of a
// commit's processor time.
const piece = 8 << 10

// stepShared is the same for shared records, of which there are many small ones.
const stepShared = 16 << 10

// errPoisoned says that a flush failed on the open journal: what the kernel
// holds of it can't be trusted any more. Where a frame may have landed, the
// caller has to settle that first; else the next change opens the journal anew.
var errPoisoned = errors.New("an earlier flush of the journal failed on this handle; resolve the commit or acquire the record again")

// append writes one frame that changes st, and flushes it: one write through to the
// disk, over space that was written before; one flush more if somebody else
// wrote the frame before. The lock is held. Errors say by
// their kind whether the frame may have landed: ErrUnavailable or
// ErrUnknownOutcome, without operation and key.
func (r *record) append(k format.Kind, m format.Meta, payload ...[]byte) error {
	return r.appendChained(k, m, r.st.chainOf(k, m, payload), payload)
}

// appendChained is append of a frame whose chain is known.
func (r *record) appendChained(k format.Kind, m format.Meta, chain string, payload [][]byte) error {
	if r.poisoned != nil {
		return &store.Error{Kind: store.ErrUnavailable, Err: r.poisoned}
	}
	m.Time = r.time()
	h, b, err := r.st.frameInto(r.buf[:0], k, m, chain, payload)
	if err != nil {
		return &store.Error{Kind: store.ErrUnavailable, Err: err}
	}
	if r.buf = nil; cap(b) <= keptBuffer {
		r.buf = b
	}
	if err := r.settleFlush(); err != nil {
		return &store.Error{Kind: store.ErrUnavailable, Detail: "the last frame is not known to be on the disk", Err: err}
	}
	if err := r.setAside(); err != nil {
		return &store.Error{Kind: store.ErrUnavailable, Detail: "the torn tail was not set aside", Err: err}
	}
	if err := r.extend(r.st.end + int64(len(b))); err != nil {
		return &store.Error{Kind: store.ErrUnavailable, Err: err}
	}
	if err := r.put(b); err != nil {
		return err
	}
	if r.passed() {
		err := r.forget()
		return &store.Error{Kind: store.ErrUnknownOutcome, Detail: detailPassed, Err: err}
	}
	if k == format.Commit && r.st.sinceIndex >= indexEvery {
		r.extendIndex()
	}
	if err := r.st.applyChained(r.key, h, m, payload, chain); err != nil {
		return &store.Error{Kind: store.ErrUnknownOutcome, Err: errors.Join(err, r.forget())}
	}
	r.ending = append(r.ending[:0], b[len(b)-endingLen:]...)
	return nil
}

// keptBuffer is how long a frame's buffer may be to be kept for the next one.
const keptBuffer = 64 << 10

// put writes b behind the last frame and makes it durable. Whether it was the write
// that failed or the flush is told by what stands in the file: nobody takes less than
// all of b for a frame. Either way the descriptor is not used for another one.
func (r *record) put(b []byte) error {
	err := r.journal.WriteThrough(b, r.st.end)
	if err == nil {
		return nil
	}
	r.poisoned = fmt.Errorf("%w: %w", errPoisoned, err)
	there := make([]byte, len(b))
	if _, rerr := r.journal.ReadAt(there, r.st.end); rerr != nil || bytes.Equal(there, b) {
		r.unsure = true
		return &store.Error{Kind: store.ErrUnknownOutcome, Err: err}
	}
	if uerr := r.undo(int64(len(b))); uerr != nil {
		r.s.log.Warn("what was written of a frame stays behind the last one", "file", r.journal.Name(), "offset", r.st.end, "err", uerr)
	}
	return &store.Error{Kind: store.ErrUnavailable, Err: err}
}

// undo puts filler over the n bytes of a frame that was written in part, through a
// descriptor that no flush failed on, and flushes it: the next frame may be shorter,
// and makes no more than itself durable.
func (r *record) undo(n int64) error {
	f, err := r.dir.OpenFile(journalName(r.of), os.O_RDWR)
	if err != nil {
		return err
	}
	journal := r.s.wrap(f)
	_, err = journal.WriteAt(filler(n), r.st.end)
	if err == nil {
		err = journal.Flush()
	}
	return errors.Join(err, journal.Close())
}

// extend makes sure that the file reaches past end, so that it never ends
// within a frame, nor at its end while the record is in use: a file cut short
// can be told from a torn write.
func (r *record) extend(end int64) error {
	if r.size > end {
		return nil
	}
	size, err := r.journal.Size()
	if err != nil {
		return err
	}
	if r.size = size; size > end {
		// Another handle made it longer, and may not have come to its flush.
		if err := r.journal.Flush(); err != nil {
			r.poisoned = fmt.Errorf("%w: %w", errPoisoned, err)
			return err
		}
		return nil
	}
	ahead := r.s.ahead
	if r.key.Kind.Shared() {
		ahead = stepShared
	}
	if err := r.fill(size, (end/ahead+1)*ahead); err != nil {
		// The disk may have room for this frame still.
		if _, again := r.journal.WriteAt(filler(end+1-size), size); again != nil {
			return err
		}
	}
	if err := r.journal.Flush(); err != nil {
		r.poisoned = fmt.Errorf("%w: %w", errPoisoned, err)
		return err
	}
	return nil
}

// fill writes filler from from to to, in pieces.
func (r *record) fill(from, to int64) error {
	blank := r.s.blank()
	for from < to {
		n := min(piece, to-from)
		if _, err := r.journal.WriteAt(blank[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

func filler(n int64) []byte { return bytes.Repeat([]byte{format.Filler}, int(n)) }

// setAside copies a torn tail into a file of its own and puts filler in its place (S-7).
func (r *record) setAside() error {
	t := r.tail
	if t.to == t.from {
		return nil
	}
	b := make([]byte, t.to-t.from)
	if _, err := r.journal.ReadAt(b, t.from); err != nil {
		return err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s%d-%s", tornPrefix, t.from, id)
	if err := r.dir.WriteAtomic(name, b); err != nil {
		return err
	}
	r.s.log.Warn("a torn write was set aside", "kind", r.key.Kind, "id", r.key.ID, "file", name, "offset", t.from, "bytes", len(b))
	if _, err := r.journal.WriteAt(filler(int64(len(b))), t.from); err != nil {
		return err
	}
	if err := r.journal.Flush(); err != nil {
		r.poisoned = fmt.Errorf("%w: %w", errPoisoned, err)
		return err
	}
	r.tail = tail{}
	return nil
}

const tornPrefix = "torn-"

// settleFlush makes the last frame durable if this descriptor did not flush it:
// it may be what another's failed flush left in memory only. Writing the same
// bytes again lets this flush cover them. It comes before every use of the frame,
// as an answer or as the ground of the next one, so that at no time more than one
// frame, the last, can be missing on the disk.
func (r *record) settleFlush() error {
	if r.poisoned != nil || !r.fresh {
		return r.poisoned
	}
	last := make([]byte, r.st.end-r.st.last)
	_, err := r.journal.ReadAt(last, r.st.last)
	if err == nil {
		_, err = r.journal.WriteAt(last, r.st.last)
	}
	if err == nil {
		err = r.journal.Flush()
	}
	if err != nil {
		// Nothing new was written, so the next change may try with another descriptor.
		r.poisoned = fmt.Errorf("%w: %w", errPoisoned, err)
		return err
	}
	r.fresh = false
	return nil
}
