package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loophost/loophost/host/store"
)

// modelRecord is what the port says a record is, in a few plain fields.
type modelRecord struct {
	there      bool
	mark       store.Mark
	history    []store.Mark // of this birth, oldest first
	head       []byte
	log        []store.Entry
	lastID     string
	fence      store.Fence // zero: unowned
	generation string
	released   bool
	signals    string // as pending renders them
	made       []madeCommit
	fences     []store.Fence // every fence that was ever granted, of all births
	births     []store.Birth
}

// madeCommit is an applied commit of the present birth with its answer.
type madeCommit struct {
	c     store.Commit
	fence store.Fence
	ack   store.Ack
}

// world runs operations on a store and on the model, and compares.
type world struct {
	e       *Env
	handles []store.Store
	prefix  string // of this attempt's ids
	records []modelRecord
}

func (w *world) key(op modelOp) store.Key { return w.e.Key(fmt.Sprintf("%s%d", w.prefix, op.key)) }

// recent are the commits whose ids every store still remembers (S-3); the
// revisions of resolutions count as well, to be on the safe side.
func (r *modelRecord) recent() []madeCommit {
	oldest := uint64(0)
	if r.mark.Revision > store.MinRememberedCommits {
		oldest = r.mark.Revision - store.MinRememberedCommits
	}
	return slices.DeleteFunc(slices.Clone(r.made), func(m madeCommit) bool { return m.ack.Mark.Revision <= oldest })
}

// pickFence chooses the current fence mostly, else a stale or a changed one.
func (w *world) pickFence(r *modelRecord, x int) store.Fence {
	switch {
	case x%10 == 0 && len(r.fences) > 0:
		return r.fences[x/10%len(r.fences)]
	case x%10 == 1:
		f := r.fence
		f.Generation = w.e.UUID()
		return f
	default:
		return r.fence
	}
}

// holds is the model's fence check.
func (r *modelRecord) holds(f store.Fence) error {
	switch {
	case !r.there:
		return store.ErrNotFound
	case f.IsZero() || f != r.fence:
		return store.ErrFenced
	}
	return nil
}

// expect compares an operation's error with the model's.
func expect(what string, got, want error) error {
	if want == nil {
		return wantOK(what, got)
	}
	return wantKind(what, got, want)
}

// step runs one operation and checks its answer and the record after it.
func (w *world) step(ctx context.Context, op modelOp) error {
	r := &w.records[op.key]
	s := w.handles[op.handle]
	var err error
	switch op.what {
	case "create":
		err = w.create(ctx, s, r, op)
	case "acquire":
		err = w.acquire(ctx, s, r, op)
	case "commit":
		err = w.commit(ctx, s, r, op)
	case "repeat":
		err = w.repeat(ctx, s, r, op)
	case "resolve":
		err = w.resolve(ctx, s, r, op)
	case "renew":
		f := w.pickFence(r, op.x)
		err = expect("renew", s.Renew(ctx, w.key(op), f, time.Hour), r.holds(f))
	case "release":
		err = w.release(ctx, s, r, op)
	case "signal":
		err = w.signal(ctx, s, r, op)
	case "delete":
		err = w.delete(ctx, s, r, op)
	}
	return errors.Join(err, w.compare(ctx, w.handles[op.y%len(w.handles)], r, op))
}

func (w *world) create(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	c := store.Commit{ID: w.e.UUID(), Head: []byte(fmt.Sprint("created ", op.x)), Entries: make([][]byte, op.y%3)}
	ack, err := s.Create(ctx, w.key(op), c)
	if r.there {
		return wantKind("create", err, store.ErrExists)
	}
	if err != nil {
		return wantOK("create", err)
	}
	for _, b := range r.births {
		if ack.Mark.Birth <= b {
			return failf("create: want a birth after %d, got %d", b, ack.Mark.Birth)
		}
	}
	*r = modelRecord{there: true, released: true, mark: store.Mark{Birth: ack.Mark.Birth}, fences: r.fences, births: append(r.births, ack.Mark.Birth)}
	return r.applied("create", c, store.Fence{}, ack)
}

// applied extends the model by c and checks the ack.
func (r *modelRecord) applied(what string, c store.Commit, f store.Fence, ack store.Ack) error {
	r.mark = store.Mark{Birth: r.mark.Birth, Revision: r.mark.Revision + 1, Chain: store.Chain(r.mark.Chain, c)}
	r.history = append(r.history, r.mark)
	r.head, r.lastID = c.Head, c.ID
	for _, d := range c.Entries {
		r.log = append(r.log, store.Entry{Seq: uint64(len(r.log)) + 1, Revision: r.mark.Revision, Data: d})
	}
	r.made = append(r.made, madeCommit{c, f, ack})
	return errors.Join(
		wantEqual(what+": mark of the ack", ack.Mark, r.mark),
		wantEqual(what+": log length of the ack", ack.LogLength, uint64(len(r.log))),
		wantEqual(what+": signals of the ack", pending(ack.Signals), r.signals),
	)
}

func (w *world) acquire(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	claim := store.Claim{Owner: fmt.Sprint("owner ", op.x%3), Run: w.e.UUID(), TTL: time.Hour, Force: op.x%2 == 0}
	var want error
	switch { // in the order of precedence
	case !r.there:
		want = store.ErrNotFound
	case op.y%8 == 0:
		claim.Generation = w.e.UUID()
		want = store.ErrConflict
	case !r.fence.IsZero() && !claim.Force:
		want = store.ErrBusy
	case op.y%8 == 1:
		claim.Seen = store.Mark{Birth: r.mark.Birth, Revision: r.mark.Revision + 1, Chain: r.mark.Chain}
		want = store.ErrRegressed
	}
	if want == nil && op.y%8 == 2 {
		claim.Generation = r.generation
	}
	if want == nil && op.y%8 == 3 {
		claim.Seen = r.history[op.z%len(r.history)]
	}
	f, _, err := s.Acquire(ctx, w.key(op), claim)
	if want != nil || err != nil {
		return expect("acquire", err, want)
	}
	for _, old := range r.fences {
		if old.Generation == f.Generation {
			return failf("acquire: want a new generation, got %s again", f.Generation)
		}
	}
	r.fence, r.generation, r.released, r.signals = f, f.Generation, false, ""
	r.fences = append(r.fences, f)
	return wantEqual("acquired fence", f, store.Fence{Birth: r.mark.Birth, Generation: f.Generation, Owner: claim.Owner, Run: claim.Run})
}

func (w *world) commit(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	f := w.pickFence(r, op.x)
	c := store.Commit{ID: w.e.UUID(), After: r.mark, Head: []byte(fmt.Sprint("head ", op.z))}
	for i := range op.y % 4 {
		c.Entries = append(c.Entries, []byte(fmt.Sprintf("entry %d of %d", i, op.z)))
	}
	want := r.holds(f)
	switch op.z % 12 {
	case 0:
		c.After.Revision++
		want = firstOf(want, store.ErrRegressed)
	case 1:
		c.After.Chain = otherChain
		want = firstOf(want, store.ErrRegressed)
	case 2:
		if r.there && len(r.history) > 1 {
			c.After = r.history[op.y%(len(r.history)-1)]
			want = firstOf(want, store.ErrConflict)
		}
	case 3:
		c.After.Birth++
		want = firstOf(want, store.ErrFenced)
	case 4:
		c.After.Chain = ""
	}
	ack, err := s.Commit(ctx, w.key(op), f, c)
	if want != nil || err != nil {
		return expect("commit", err, want)
	}
	return r.applied("commit", c, f, ack)
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// repeat sends an applied commit again, under its own fence or another, or its
// id with other content.
func (w *world) repeat(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	recent := r.recent()
	if !r.there || len(recent) == 0 {
		return nil
	}
	m := recent[op.x%len(recent)]
	first := m.c.After == (store.Mark{})
	send := func(c store.Commit) (store.Ack, error) {
		if first {
			return s.Create(ctx, w.key(op), c)
		}
		return s.Commit(ctx, w.key(op), m.fence, c)
	}
	if op.y%3 == 0 {
		c := m.c
		c.Head = append([]byte("not "), c.Head...)
		_, err := send(c)
		return wantKind("an applied commit's id with another head", err, store.ErrCommitIDReused)
	}
	ack, err := send(m.c)
	if err != nil {
		return wantOK("an applied commit again", err)
	}
	return wantAck("an applied commit again", ack, m.ack)
}

func (w *world) resolve(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	f := w.pickFence(r, op.x)
	if recent := r.recent(); r.there && op.y%2 == 0 && len(recent) > 0 {
		m := recent[op.z%len(recent)]
		out, err := s.Resolve(ctx, w.key(op), f, m.c.ID)
		if err != nil {
			return wantOK("resolve an applied commit", err)
		}
		return errors.Join(wantEqual("resolve an applied commit: applied", out.Applied, true), wantAck("resolve an applied commit", out.Ack, m.ack))
	}
	id := w.e.UUID()
	want := r.holds(f)
	out, err := s.Resolve(ctx, w.key(op), f, id)
	if want != nil || err != nil {
		return expect("resolve", err, want)
	}
	r.mark = store.Mark{Birth: r.mark.Birth, Revision: r.mark.Revision + 1, Chain: store.ChainNever(r.mark.Chain, id)}
	r.history = append(r.history, r.mark)
	return errors.Join(wantEqual("resolve a commit that never arrived: applied", out.Applied, false), wantEqual("its mark", out.Ack.Mark, r.mark))
}

func (w *world) release(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	f := w.pickFence(r, op.x)
	want := r.holds(f)
	err := s.Release(ctx, w.key(op), f)
	if want == nil && err == nil {
		r.fence, r.released, r.signals = store.Fence{}, true, ""
	}
	return expect("release", err, want)
}

func (w *world) signal(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	sig := store.Signal{Kind: store.SignalStop, Run: r.fence.Run}
	if op.x%2 == 0 {
		sig.Kind = store.SignalCancel
	}
	if op.y%5 == 0 && len(r.fences) > 0 {
		sig.Run = r.fences[op.z%len(r.fences)].Run
	}
	var want error
	if !r.there || r.fence.IsZero() || sig.Run != r.fence.Run {
		want = store.ErrNotFound
	}
	err := s.Signal(ctx, w.key(op), sig)
	if want == nil && err == nil && r.signals != string(sig.Kind) {
		if r.signals == "" {
			r.signals = string(sig.Kind)
		} else {
			r.signals = "cancel stop"
		}
	}
	return expect("signal", err, want)
}

func (w *world) delete(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	f := w.pickFence(r, op.x)
	want := r.holds(f)
	err := s.Delete(ctx, w.key(op), f)
	if want == nil && err == nil {
		*r = modelRecord{fences: r.fences, births: r.births}
	}
	return expect("delete", err, want)
}

// compare reads the record through s and checks every field the model knows.
func (w *world) compare(ctx context.Context, s store.Store, r *modelRecord, op modelOp) error {
	got, err := look(ctx, s, w.key(op))
	if err != nil {
		return err
	}
	if !r.there || got.absent {
		return wantEqual("record is there", !got.absent, r.there)
	}
	return errors.Join(
		wantEqual("mark", got.record.Mark, r.mark),
		wantBytes("head", got.record.Head, r.head),
		wantEqual("log length", got.record.LogLength, uint64(len(r.log))),
		sameLog("log", got.log, r.log),
		wantEqual("last commit id", got.record.LastCommitID, r.lastID),
		wantEqual("fence", got.record.Fence, r.fence),
		wantEqual("last generation", got.record.Generation, r.generation),
		wantEqual("released", got.record.Released, r.released),
		wantEqual("a holder is named", got.record.Holder != nil, !r.fence.IsZero()),
		wantEqual("pending signals", pending(got.record.Signals), r.signals),
	)
}
