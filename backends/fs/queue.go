package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

var _ store.Queue = (*Store)(nil)

// queueEvery is how often a worker that waits looks whether another process changed the
// queue: one system call.
const queueEvery = 100 * time.Millisecond

// queue is one queue as one handle sees it: what its journal says, up to end. Its fields
// belong to whoever holds turn.
type queue struct {
	s    *Store
	name string
	key  store.Key
	turn chan struct{} // one token; taking it is entering

	dir     *disk.Dir // nil: not opened, or not there
	lock    *os.File
	named   bool // the names of the folder and its files are durable
	journal disk.File
	writes  bool       // it is open for writing
	placed  bool       // its name is durable
	at      disk.Sight // the journal, as long as it was when it was read last
	last    int64      // where the last whole line begins
	end     int64      // where it ends
	sum     uint32     // its checksum
	live    int64      // bytes of the lines that a new journal would hold
	st      ledger.Queue[place]

	by     map[string]string // who holds a token
	holder *os.File          // says that this handle lives; nil: it never leased
	me     string            // its name
	buried time.Time         // when the holders were looked at last
}

// place is where an item was added, which is where its data are.
type place struct {
	at, n  int64
	before uint32 // checksum of the line before
}

// useQueue gives the queue as this handle keeps it, and the turn on it.
func (s *Store) useQueue(ctx context.Context, name string) (*queue, error) {
	s.mu.Lock()
	q := s.queues[name]
	if q == nil {
		q = &queue{s: s, name: name, key: store.QueueKey(name), turn: make(chan struct{}, 1), by: map[string]string{}}
		s.queues[name] = q
	}
	s.mu.Unlock()
	select {
	case q.turn <- struct{}{}:
		return q, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *queue) leave() { <-q.turn }

// onQueue runs f with the turn on a queue.
func (s *Store) onQueue(ctx context.Context, op, name string, f func(*queue) error) error {
	leave, err := s.start(ctx, op, store.QueueKey(name))
	if err != nil {
		return err
	}
	defer leave()
	if err := store.CheckQueue(op, name); err != nil {
		return err
	}
	q, err := s.useQueue(ctx, name)
	if err != nil {
		return err
	}
	defer q.leave()
	return fail(op, q.key, f(q))
}

// Enqueue adds an item, unless its id is there.
func (s *Store) Enqueue(ctx context.Context, name string, item store.Item) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := item.Validate(name); err != nil {
		return err
	}
	return s.onQueue(ctx, "enqueue", name, func(q *queue) error {
		if err := q.make(); err != nil {
			return err
		}
		return q.change(ctx, func(time.Time) (format.QueueLine, error) {
			if q.st.Has(item.ID) {
				return format.QueueLine{}, nil
			}
			return format.QueueLine{Do: format.QueueAdd, Items: []format.QueueItem{{ID: item.ID}}, Data: item.Data}, nil
		})
	})
}

// Lease hands out items, and waits for one. While there is none, it takes no lock.
func (s *Store) Lease(ctx context.Context, name, worker string, ttl time.Duration, max int) ([]store.Leased, error) {
	const op = "lease"
	ttl, max, err := store.CheckLease(name, worker, ttl, max)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	leave, err := s.start(ctx, op, store.QueueKey(name))
	if err != nil {
		return nil, err
	}
	defer leave()
	tick := time.NewTicker(queueEvery)
	defer tick.Stop()
	for {
		var out []store.Leased
		var soonest time.Time
		err := s.onQueue(ctx, op, name, func(q *queue) error {
			err := q.look(ctx)
			if err == nil && q.dir != nil && len(q.st.Next(s.now(), 1)) > 0 {
				out, err = q.lease(ctx, worker, ttl, max)
			}
			if err == nil && len(out) == 0 && q.dir != nil {
				err = q.bury(ctx)
			}
			soonest = q.st.Soonest()
			return err
		})
		if err != nil || len(out) > 0 {
			return out, err
		}
		if err := s.await(ctx, tick.C, soonest); err != nil {
			return nil, err
		}
	}
}

// await returns when it is worth to look again; the store's end shows then.
func (s *Store) await(ctx context.Context, tick <-chan time.Time, soonest time.Time) error {
	var over <-chan time.Time
	if left := soonest.Sub(s.now()); !soonest.IsZero() && left < queueEvery {
		timer := time.NewTimer(left)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-tick:
	case <-over:
	case <-s.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (q *queue) lease(ctx context.Context, worker string, ttl time.Duration, max int) (out []store.Leased, err error) {
	err = q.change(ctx, func(now time.Time) (format.QueueLine, error) {
		out = nil
		if err := q.hold(); err != nil {
			return format.QueueLine{}, err
		}
		line := format.QueueLine{Do: format.QueueLease, Worker: worker, By: q.me, Until: now.Add(ttl).UTC().Round(0)}
		for _, u := range q.st.Next(now, max) {
			token, err := uuid.NewRandom()
			if err != nil {
				return line, err
			}
			add, err := q.added(u.Data)
			if err != nil {
				return line, err
			}
			line.Items = append(line.Items, format.QueueItem{ID: u.ID, Token: token.String()})
			out = append(out, store.Leased{Item: store.Item{ID: u.ID, Data: add.Data}, Token: token.String(), Delivery: u.Delivery + 1, Expires: line.Until})
		}
		if len(out) == 0 { // somebody was faster
			return format.QueueLine{}, nil
		}
		return line, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// added reads the line that added an item.
func (q *queue) added(p place) (format.QueueLine, error) {
	b := make([]byte, p.n)
	if _, err := q.journal.ReadAt(b, p.at); err != nil {
		return format.QueueLine{}, err
	}
	l, _, err := format.ParseQueueLine(b, p.before)
	if err != nil {
		return l, q.corrupt(p.at, err)
	}
	return l, nil
}

// Extend moves the end of a lease.
func (s *Store) Extend(ctx context.Context, name, token string, ttl time.Duration) error {
	if ttl <= 0 {
		ttl = store.DefaultTTL
	}
	return s.holding(ctx, "extend", name, token, func(now time.Time) format.QueueLine {
		return format.QueueLine{Do: format.QueueExtend, Token: token, Until: now.Add(ttl).UTC().Round(0)}
	})
}

// Done removes an item.
func (s *Store) Done(ctx context.Context, name, token string) error {
	return s.holding(ctx, "done", name, token, func(time.Time) format.QueueLine {
		return format.QueueLine{Do: format.QueueDone, Token: token}
	})
}

// Return puts an item at the end.
func (s *Store) Return(ctx context.Context, name, token string) error {
	return s.holding(ctx, "return", name, token, func(time.Time) format.QueueLine {
		return format.QueueLine{Do: format.QueueReturn, Token: token}
	})
}

// holding writes the line that a current token allows.
func (s *Store) holding(ctx context.Context, op, name, token string, line func(time.Time) format.QueueLine) error {
	return s.onQueue(ctx, op, name, func(q *queue) error {
		if err := q.open(); err != nil {
			return err
		}
		if q.dir == nil {
			return store.NotLeased(op, name)
		}
		return q.change(ctx, func(now time.Time) (format.QueueLine, error) {
			if q.st.Holds(token) == nil {
				return format.QueueLine{}, store.NotLeased(op, name)
			}
			return line(now), nil
		})
	})
}

// look reads what others wrote. It takes the lock only to be sure of damage.
func (q *queue) look(ctx context.Context) error {
	err := q.news(false)
	if errors.Is(err, store.ErrCorrupt) {
		err = q.change(ctx, func(time.Time) (format.QueueLine, error) { return format.QueueLine{}, nil })
	}
	return err
}

// Queued counts the items. It takes no lock.
func (s *Store) Queued(ctx context.Context, name string) (b store.Backlog, err error) {
	err = s.onQueue(ctx, "queued", name, func(q *queue) error {
		if err := q.look(ctx); err != nil {
			return err
		}
		b = q.st.Backlog(s.now())
		return nil
	})
	return b, err
}

// change takes the lock, reads what others wrote, and writes the line that f makes of it;
// the zero line is none.
func (q *queue) change(ctx context.Context, f func(now time.Time) (format.QueueLine, error)) error {
	if err := q.take(ctx); err != nil {
		return err
	}
	defer func() {
		if err := disk.Unlock(q.lock); err != nil {
			err = errors.Join(err, q.close()) // a closed descriptor has no lock either
			q.s.log.Error("a queue's lock was not given back", "queue", q.name, "err", err)
		}
	}()
	if err := q.news(true); err != nil {
		return err
	}
	line, err := f(q.s.now())
	if err != nil || line.Do == "" {
		return err
	}
	if !q.placed { // whoever put it there may not have come that far
		if err := q.dir.Sync("."); err != nil {
			return err
		}
		q.placed = true
	}
	if err := q.write(line); err != nil {
		return err
	}
	if q.end > queueSlack && q.end/4 > q.live {
		if err := q.compact(); err != nil {
			q.s.log.Warn("a queue's journal was not shortened", "queue", q.name, "err", err)
		}
	}
	return nil
}

// take takes the queue's lock, which is held for one change. Whoever is stopped with it
// stops the others too: they hear that the queue is not available.
func (q *queue) take(ctx context.Context) error {
	pause := 50 * time.Microsecond
	for since := time.Now(); ; {
		ok, err := disk.TryLock(q.lock)
		if err != nil {
			return err
		}
		if ok {
			mine := q.lock
			if err := q.open(); err != nil {
				return errors.Join(err, q.close())
			}
			if q.lock == mine {
				return nil
			}
			if q.dir == nil {
				return &store.Error{Kind: store.ErrUnavailable, Detail: "the queue's folder was removed meanwhile"}
			}
			continue // it was replaced
		}
		if time.Since(since) >= patience {
			return &store.Error{Kind: store.ErrUnavailable, Detail: fmt.Sprintf("another process holds %s for more than %s; see which one is stopped with: fuser %s", q.lock.Name(), patience, q.lock.Name())}
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// write appends the line, durably, or leaves the journal as it was.
func (q *queue) write(l format.QueueLine) error {
	b, sum, err := l.Encode(q.sum)
	if err != nil {
		return err
	}
	before := place{at: q.end, n: int64(len(b)), before: q.sum}
	if _, err := q.journal.WriteAt(b, q.end); err != nil {
		return q.undo(err, store.ErrUnavailable)
	}
	if err := q.journal.Flush(); err != nil {
		return q.undo(err, store.ErrUnknownOutcome)
	}
	if err := q.apply(l, before); err != nil {
		return err
	}
	q.last, q.end, q.sum = q.end, q.end+before.n, sum
	q.at.Size = q.end
	return nil
}

// undo cuts off a line that is not durable. What stays of it where that fails too is
// taken for a line, or set aside, by whoever comes next. The descriptor is not flushed again.
func (q *queue) undo(cause, kind error) error {
	if err := q.journal.Truncate(q.end); err != nil {
		kind, cause = store.ErrUnknownOutcome, errors.Join(cause, err)
	}
	return &store.Error{Kind: kind, Detail: "the queue's journal was not written", Err: errors.Join(cause, q.forget())}
}

// apply takes one line in. A line that does not fit to those before it is damage.
func (q *queue) apply(l format.QueueLine, p place) error {
	fits := false
	switch l.Do {
	case format.QueueAdd:
		if fits = len(l.Items) == 1 && !q.st.Has(l.Items[0].ID); fits {
			q.st.Add(l.Items[0].ID, p, l.Before)
			q.live += p.n
		}
	case format.QueueLease:
		fits = len(l.Items) > 0 && (l.By == "" || isHolder(l.By))
		for _, i := range l.Items {
			fits = i.Token != "" && q.st.Hold(i.ID, i.Token, l.Worker, l.Until) && fits
			q.by[i.Token] = l.By
		}
	case format.QueueGone:
		if fits = isHolder(l.By); fits {
			q.gone(l.By, l.Until)
		}
	case format.QueueExtend:
		fits = q.st.Extend(l.Token, l.Until)
	case format.QueueReturn:
		fits = q.st.Back(l.Token)
		delete(q.by, l.Token)
	case format.QueueDone:
		if u := q.st.Holds(l.Token); u != nil {
			q.live -= u.Data.n
		}
		fits = q.st.Remove(l.Token)
		delete(q.by, l.Token)
	}
	if !fits {
		return q.corrupt(p.at, errors.New("the line does not fit to those before it"))
	}
	return nil
}

// corrupt is ErrCorrupt with the place (S-7).
func (q *queue) corrupt(at int64, why error) error {
	return &store.Error{Kind: store.ErrCorrupt, Detail: fmt.Sprintf("%s: at byte %d; a queue only hints at work, so the file may be moved away: whoever dispatches enqueues again", q.journal.Name(), at), Err: why}
}

// isAbsent reports that a name is not there.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
