package conformance

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/loophost/loophost/host/store"
)

func queueLimits(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "limits", 1)
	if err != nil {
		return err
	}
	q, name := w[0].q, w[0].name
	data := bytes.Repeat([]byte{0, 0xff, '\n', '<', '"'}, store.MaxItemBytes/5+1)[:store.MaxItemBytes]
	for _, item := range []store.Item{
		{ID: strings.Repeat("x", store.MaxItemIDBytes), Data: data}, {ID: "scope/assignment\x00/7 ü\u2028\n", Data: []byte("\xff\x00\r\n")}, {ID: " "}, {ID: "A", Data: []byte{}}, {ID: "a"},
	} {
		if err := wantOK("enqueue within the limits", q.Enqueue(ctx, name, item)); err != nil {
			return err
		}
		soon, cancel := context.WithTimeout(ctx, e.patience)
		got, err := w[0].lease(soon, strings.Repeat("w", store.MaxOwnerBytes), time.Hour, 1)
		cancel()
		if err != nil || len(got) != 1 {
			return failf("lease: want one item, got %d and %v", len(got), err)
		}
		if got[0].ID != item.ID {
			return failf("id: want %s, got %s", brief([]byte(item.ID)), brief([]byte(got[0].ID)))
		}
		if err := errors.Join(wantBytes("data", got[0].Data, item.Data), w[0].done(ctx, got[0])); err != nil {
			return err
		}
	}
	var bad []error
	for what, c := range map[string]struct {
		queue string
		item  store.Item
		want  error
	}{
		"no name": {"", store.Item{ID: "a"}, store.ErrInvalidID}, "a name with a slash": {"a/b", store.Item{ID: "a"}, store.ErrInvalidID},
		"a name of dots": {"..", store.Item{ID: "a"}, store.ErrInvalidID}, "a long name": {strings.Repeat("n", store.MaxQueueBytes+1), store.Item{ID: "a"}, store.ErrInvalidID},
		"a name in capitals": {"A", store.Item{ID: "a"}, store.ErrInvalidID},
		"no id":              {name, store.Item{}, store.ErrInvalidID}, "a long id": {name, store.Item{ID: strings.Repeat("x", store.MaxItemIDBytes+1)}, store.ErrInvalidID},
		"an id that is no UTF-8": {name, store.Item{ID: "\xff"}, store.ErrInvalidID},
		"too much data":          {name, store.Item{ID: "a", Data: append(data, 0)}, store.ErrTooLarge},
	} {
		bad = append(bad, wantKind("enqueue with "+what, q.Enqueue(ctx, c.queue, c.item), c.want))
	}
	soon, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	_, err = q.Lease(soon, "..", "w", time.Hour, 1)
	bad = append(bad, wantKind("lease from a queue of dots", err, store.ErrInvalidID))
	_, err = w[0].lease(soon, strings.Repeat("w", store.MaxOwnerBytes+1), time.Hour, 1)
	bad = append(bad, wantKind("lease by a long worker", err, store.ErrTooLarge))
	_, err = w[0].lease(soon, "\xff", time.Hour, 1)
	bad = append(bad, wantKind("lease by a worker that is no UTF-8", err, store.ErrUnsupported))
	_, err = q.Queued(ctx, "..")
	bad = append(bad, wantKind("count a queue of dots", err, store.ErrInvalidID), wantKind("done in a queue of dots", q.Done(ctx, "..", "t"), store.ErrInvalidID))
	return errors.Join(append(bad, w[0].counts(ctx, "after refusals", 0, 0))...)
}

func queueZeros(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "zeros", 2)
	if err != nil {
		return err
	}
	if err := w[0].counts(ctx, "a queue that was never used", 0, 0); err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b"); err != nil {
		return err
	}
	got, err := w[0].lease(ctx, "", 0, 0)
	if err != nil || len(got) != 1 {
		return failf("lease of no number: want one item, got %d and %v", len(got), err)
	}
	if err := errors.Join(w[1].counts(ctx, "leased for no time", 1, 1), wantOK("extend by no time", w[0].q.Extend(ctx, w[0].name, got[0].Token, 0)), w[1].counts(ctx, "extended by no time", 1, 1)); err != nil {
		return err
	}
	l, err := w[1].take(ctx, time.Hour, "b", 1)
	return errors.Join(err, w[1].done(ctx, l), w[0].done(ctx, got[0]))
}

func queueContext(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "context", 1)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b"); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	q, name := w[0].q, w[0].name
	_, leased := w[0].lease(gone, "w", time.Hour, 1)
	_, counted := q.Queued(gone, name)
	for what, err := range map[string]error{
		"enqueue": q.Enqueue(gone, name, store.Item{ID: "c"}), "lease": leased, "count": counted,
		"extend": q.Extend(gone, name, l.Token, time.Hour), "return": q.Return(gone, name, l.Token), "done": q.Done(gone, name, l.Token),
	} {
		if !errors.Is(err, context.Canceled) || store.KindOf(err) != nil {
			return failf("%s under an ended context: want the context's error alone, got %v", what, err)
		}
	}
	return errors.Join(w[0].counts(ctx, "after calls under an ended context", 1, 1), w[0].done(ctx, l))
}

func queueClosed(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "closed", 1)
	if err != nil {
		return err
	}
	s, ok := w[0].q.(store.Store)
	if !ok {
		return failf("want a handle that is a store.Store, got %T", w[0].q)
	}
	soon, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		_, err := w[0].lease(soon, "one that waits", time.Hour, 1)
		waited <- err
	}()
	// Meanwhile another one waits beside it, so it has begun as far as one can know.
	beside := w[0].nothing(ctx, "an empty queue")
	bad := []error{beside, wantOK("close", s.Close()), wantKind("a lease that waits while its handle is closed", <-waited, store.ErrUnavailable)}
	_, err = w[0].lease(soon, "late", time.Hour, 1)
	bad = append(bad, wantKind("lease", err, store.ErrUnavailable))
	_, err = w[0].q.Queued(ctx, w[0].name)
	return errors.Join(append(bad, wantKind("count", err, store.ErrUnavailable),
		wantKind("enqueue", w[0].q.Enqueue(ctx, w[0].name, store.Item{ID: "a"}), store.ErrUnavailable),
		wantKind("done", w[0].q.Done(ctx, w[0].name, "t"), store.ErrUnavailable))...)
}
