package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func listCases() []Case {
	return []Case{
		core("S-10/list-pages", "Listing page by page gives every record of the kind exactly once, with its state, in an order that stays the same.", listPages),
		core("S-10/list-default-limit", "A page without a limit holds at most 100 records, and its cursor leads to the rest.", listDefault),
		core("S-10/list-while-it-changes", "Records that are there during the whole listing are listed, whatever comes and goes beside them.", listChanging),
		core("S-10/list-nothing", "A kind without records is one empty page.", listNothing),
	}
}

// listAll follows the cursors from the start.
func listAll(ctx context.Context, s store.Store, kind store.Kind, limit int) ([]store.Listed, error) {
	var all []store.Listed
	q := store.Query{Kind: kind, Limit: limit}
	for {
		p, err := s.List(ctx, q)
		if err != nil {
			return all, failf("list from cursor %q: want success, got %w", q.Cursor, err)
		}
		if limit > 0 && len(p.Items) > limit {
			return all, failf("list with limit %d: want at most so many, got %d", limit, len(p.Items))
		}
		all = append(all, p.Items...)
		if p.Next == "" {
			return all, nil
		}
		if p.Next == q.Cursor || len(all) > maxLeftovers {
			return all, failf("list: want cursors that come to an end, got %q after %d records", p.Next, len(all))
		}
		q.Cursor = p.Next
	}
}

func listPages(ctx context.Context, e *Env) error {
	const n = 23
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	want := map[string]store.Record{}
	for i := range n {
		a, err := e.create(ctx, s, e.Key(fmt.Sprintf("item %d/%d", i%3, i)))
		if err != nil {
			return err
		}
		if i%2 == 0 {
			if err := errors.Join(a.acquire(ctx, e.claim()), a.advance(ctx, i%4)); err != nil {
				return err
			}
		}
		if want[a.key.ID], err = s.Load(ctx, a.key); err != nil {
			return failf("load: want success, got %w", err)
		}
	}
	var first []string
	for _, limit := range []int{1, 4, n - 1, n, n + 1, 0} {
		listed, err := listAll(ctx, other, e.kind, limit)
		if err != nil {
			return err
		}
		at := fmt.Sprintf("list with limit %d", limit)
		var order []string
		seen := map[string]bool{}
		for _, it := range listed {
			id := it.Record.Key.ID
			w, known := want[id]
			if !known || seen[id] {
				return failf("%s: want each of the %d records once, got %q out of place", at, n, id)
			}
			seen[id] = true
			order = append(order, id)
			if err := errors.Join(
				wantOK(at, it.Err), wantEqual(at+": key", it.Record.Key, w.Key), wantEqual(at+": mark", it.Record.Mark, w.Mark),
				wantEqual(at+": log length", it.Record.LogLength, w.LogLength), wantEqual(at+": fence", it.Record.Fence, w.Fence),
			); err != nil {
				return err
			}
		}
		if first == nil {
			first = order
		}
		if err := errors.Join(wantEqual(at+": records", len(order), n), wantEqual(at+": order", fmt.Sprintf("%q", order), fmt.Sprintf("%q", first))); err != nil {
			return err
		}
	}
	return nil
}

func listDefault(ctx context.Context, e *Env) error {
	const n, most = 103, 100
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := s.Create(ctx, e.Key(fmt.Sprint(i)), store.Commit{ID: e.UUID(), Head: []byte("h")}); err != nil {
			return failf("create number %d: want success, got %w", i, err)
		}
	}
	p, err := s.List(ctx, store.Query{Kind: e.kind})
	if err != nil {
		return failf("list: want success, got %w", err)
	}
	all, err := listAll(ctx, s, e.kind, 0)
	return errors.Join(err,
		wantEqual("records on the first page are at most 100", len(p.Items) <= most && len(p.Items) > 0, true),
		wantEqual("there is a next page", p.Next != "", true), wantEqual("records on all pages", len(all), n))
}

func listChanging(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	stay := map[string]bool{}
	var leave []*actor
	for i := range 12 {
		a, err := e.owner(ctx, s, e.Key(fmt.Sprint("item ", i)))
		if err != nil {
			return err
		}
		if i%3 == 0 {
			leave = append(leave, a)
		} else {
			stay[a.key.ID] = true
		}
	}
	q := store.Query{Kind: e.kind, Limit: 3}
	seen := map[string]int{}
	for page := 0; ; page++ {
		p, err := s.List(ctx, q)
		if err != nil {
			return failf("list page %d: want success, got %w", page, err)
		}
		for _, it := range p.Items {
			seen[it.Record.Key.ID]++
		}
		if p.Next == "" || page > 100 {
			break
		}
		q.Cursor = p.Next
		if page < len(leave) {
			a := leave[page]
			_, err := e.create(ctx, s, e.Key(fmt.Sprint("late ", page)))
			if err := errors.Join(err, s.Delete(ctx, a.key, a.fence)); err != nil {
				return failf("between two pages: %w", err)
			}
		}
	}
	var bad []error
	for id := range stay {
		bad = append(bad, wantEqual(fmt.Sprintf("times that %q is listed", id), seen[id], 1))
	}
	for id, n := range seen {
		bad = append(bad, wantEqual(fmt.Sprintf("%q is listed at most once", id), n <= 1, true))
	}
	return errors.Join(bad...)
}

func listNothing(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	p, err := s.List(ctx, store.Query{Kind: e.kind})
	return errors.Join(wantOK("list", err), wantEqual("records", len(p.Items), 0), wantEqual("cursor", p.Next, ""))
}
