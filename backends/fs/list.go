package fs

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"sort"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

const listItems = 100

// List goes through the folders of a kind in the order of their names. The
// cursor is the name of the last one.
func (s *Store) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	const op = "list"
	leave, err := s.start(ctx, op, store.Key{})
	if err != nil {
		return store.ListPage{}, err
	}
	defer leave()
	if err := (store.Key{Kind: q.Kind, ID: "any"}).Validate(); err != nil {
		return store.ListPage{}, err
	}
	if _, err := hex.DecodeString(q.Cursor); err != nil || (q.Cursor != "" && len(q.Cursor) != 64) {
		return store.ListPage{}, &store.Error{Op: op, Kind: store.ErrUnsupported, Detail: "the cursor is not one that this store gave", Err: err}
	}
	if q.Limit <= 0 {
		q.Limit = listItems
	}
	page, err := s.list(ctx, q)
	return page, fail(op, store.Key{}, err)
}

func (s *Store) list(ctx context.Context, q store.Query) (store.ListPage, error) {
	var page store.ListPage
	outer, err := s.folders(string(q.Kind))
	if err != nil {
		return page, err
	}
	last := ""
	for _, two := range outer {
		if q.Cursor != "" && two < q.Cursor[:2] {
			continue
		}
		inner, err := s.folders(string(q.Kind) + "/" + two)
		if err != nil {
			return page, err
		}
		for _, name := range inner {
			if name <= q.Cursor {
				continue
			}
			if err := ctx.Err(); err != nil {
				return store.ListPage{}, err
			}
			item, there := s.listed(ctx, q.Kind, two, name)
			if !there {
				continue
			}
			if len(page.Items) == q.Limit {
				page.Next = last
				return page, nil
			}
			page.Items = append(page.Items, item)
			last = name
		}
	}
	return page, nil
}

// folders lists the names in a folder in order; none if it is not there.
func (s *Store) folders(path string) ([]string, error) {
	names, err := s.root.Names(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	sort.Strings(names)
	return names, err
}

// listed is one record of a list; there is false for what is no record or was deleted.
func (s *Store) listed(ctx context.Context, kind store.Kind, two, name string) (item store.Listed, there bool) {
	if b, err := hex.DecodeString(name); err != nil || len(b) != 32 || name[:2] != two {
		return item, false
	}
	path := string(kind) + "/" + two + "/" + name
	b, err := s.root.ReadFile(path + "/" + idName)
	if errors.Is(err, fs.ErrNotExist) && !s.anyJournal(path) {
		return item, false
	}
	var key store.Key
	if err == nil {
		key, err = format.ParseKey(b, name)
	}
	if err != nil {
		// The folder's name is a hash, so the id is not known any more.
		item.Record.Key = store.Key{Kind: kind, ID: "(unknown id in folder " + name + ")"}
		item.Err = &store.Error{Op: "list", Key: item.Record.Key, Kind: store.ErrCorrupt, Detail: "the record's id can't be read", Err: err}
		return item, true
	}
	item.Record, item.Err = s.load(ctx, "list", key)
	item.Record.Key = key
	return item, !errors.Is(item.Err, store.ErrNotFound)
}

func (s *Store) anyJournal(path string) bool {
	names, err := s.folders(path)
	if err != nil {
		return true
	}
	for _, n := range names {
		if len(n) > len("journal-") && n[:len("journal-")] == "journal-" {
			return true
		}
	}
	return false
}
