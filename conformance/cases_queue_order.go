package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loophost/loophost/host/store"
)

func queueOrder(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "order", 2)
	if err != nil {
		return err
	}
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprint("item ", e.Rand.IntN(1000), "-", i))
		if err := w[i%2].add(ctx, ids[i]); err != nil {
			return err
		}
	}
	var got []string
	var held []store.Leased
	for i := 0; len(got) < len(ids); i++ {
		batch, err := w[i%2].lease(ctx, "a worker", time.Hour, i+1)
		if err != nil {
			return failf("lease of %d: want success, got %w", i+1, err)
		}
		if want := min(i+1, len(ids)-len(got)); len(batch) != want {
			return failf("lease of %d with %d waiting: want %d items, got %d", i+1, len(ids)-len(got), want, len(batch))
		}
		for _, l := range batch {
			got = append(got, l.ID)
		}
		held = append(held, batch...)
	}
	if !slices.Equal(got, ids) {
		return failf("order: want %q, got %q", ids, got)
	}
	for _, l := range held {
		if err := w[0].done(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func queueReturned(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "returned", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a", "b", "c"); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	if err := wantOK("return", w[0].q.Return(ctx, w[0].name, l.Token)); err != nil {
		return err
	}
	if err := w[1].counts(ctx, "after a return", 3, 0); err != nil {
		return err
	}
	for _, want := range []struct {
		id       string
		delivery uint64
	}{{"b", 1}, {"c", 1}, {"a", 2}} {
		l, err := w[1].take(ctx, time.Hour, want.id, want.delivery)
		if err := errors.Join(err, w[1].done(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}

func queueOnce(ctx context.Context, e *Env) error {
	w, err := e.queues(ctx, "once", 2)
	if err != nil {
		return err
	}
	if err := w[0].add(ctx, "a"); err != nil {
		return err
	}
	again := func(when string) error {
		return wantOK("enqueue an id that "+when, w[1].q.Enqueue(ctx, w[1].name, store.Item{ID: "a", Data: []byte("other data")}))
	}
	if err := errors.Join(again("waits"), w[0].counts(ctx, "enqueued twice", 1, 0)); err != nil {
		return err
	}
	l, err := w[0].take(ctx, time.Hour, "a", 1)
	if err != nil {
		return err
	}
	if err := errors.Join(again("is leased"), w[0].counts(ctx, "enqueued while it is leased", 0, 1), wantOK("return", w[0].q.Return(ctx, w[0].name, l.Token))); err != nil {
		return err
	}
	if err := errors.Join(again("was returned"), w[0].counts(ctx, "enqueued after it was returned", 1, 0)); err != nil {
		return err
	}
	if l, err = w[0].take(ctx, time.Hour, "a", 2); err != nil {
		return err
	}
	if err := errors.Join(w[0].done(ctx, l), w[0].add(ctx, "a")); err != nil {
		return err
	}
	l, err = w[1].take(ctx, time.Hour, "a", 1)
	return errors.Join(err, w[1].done(ctx, l))
}

func queueRaced(ctx context.Context, e *Env) error {
	const racers, rounds = 4, 5
	w, err := e.queues(ctx, "raced", 2)
	if err != nil {
		return err
	}
	for round := range rounds {
		id := fmt.Sprint("item ", round)
		var group sync.WaitGroup
		bad := make([]error, racers)
		for i := range racers {
			group.Go(func() { bad[i] = w[i%2].add(ctx, id) })
		}
		group.Wait()
		if err := errors.Join(append(bad, w[0].counts(ctx, "raced", 1, 0))...); err != nil {
			return err
		}
		l, err := w[1].take(ctx, time.Hour, id, 1)
		if err := errors.Join(err, w[1].done(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}
