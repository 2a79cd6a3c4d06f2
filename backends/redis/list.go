package redis

import (
	"context"
	"encoding/base64"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/backends/redis/internal/format"
	"github.com/loophost/loophost/host/store"
)

const listItems = 100

// The index of a kind is a sorted set of ids, all with the same score, so it is in the
// order of their bytes. In a Cluster it lies on another node than most records, so no
// script can write both. It may hold an id without a record, never lack one:
//
//	Create   put the id in ▸ make the record ▸ if there was a tombstone, put it in again
//	Delete   remove the record ▸ take the id out ▸ if a record is there again, put it back
//
// What a crash between two of these steps leaves, Reindex mends.

// List reads a page of the records of a kind, in the order of their ids' bytes.
func (s *Store) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	const op = "list"
	var page store.ListPage
	leave, err := s.start(ctx, op, store.Key{})
	if err != nil {
		return page, err
	}
	defer leave()
	if err := (store.Key{Kind: q.Kind, ID: "any"}).Validate(); err != nil {
		return page, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return page, &store.Error{Op: op, Kind: store.ErrUnsupported, Detail: "the cursor is not one that this store gave", Err: err}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = listItems
	}
	last := string(after)
	for {
		ids, err := s.ids(ctx, op, q.Kind, last, limit-len(page.Items)+1)
		if err != nil {
			return store.ListPage{}, err
		}
		more := len(ids) > limit-len(page.Items)
		if more {
			ids = ids[:len(ids)-1]
		}
		items, err := s.loadAll(ctx, op, q.Kind, ids)
		if err != nil {
			return store.ListPage{}, err
		}
		page.Items = append(page.Items, items...)
		if !more {
			return page, nil
		}
		last = ids[len(ids)-1]
		if len(page.Items) == limit {
			page.Next = base64.RawURLEncoding.EncodeToString([]byte(last))
			return page, nil
		}
	}
}

// ids are at most n ids of a kind after one; "": from the first.
func (s *Store) ids(ctx context.Context, op string, kind store.Kind, after string, n int) (ids []string, err error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	ids, err = s.srv.commands().ZRangeArgs(ctx, goredis.ZRangeArgs{
		Key: format.Index(s.addr.Prefix, kind), Start: from, Stop: "+", ByLex: true, Count: int64(n),
	}).Result()
	return ids, s.fail(op, store.Key{}, err, false)
}

// loadAll loads records in one round trip to each node; those that are not there any
// more are left out.
func (s *Store) loadAll(ctx context.Context, op string, kind store.Kind, ids []string) ([]store.Listed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	cmds := make([]*goredis.Cmd, len(ids))
	pipe := s.srv.pipeline()
	for i, id := range ids {
		cmds[i] = command(ctx, "evalsha", loadScript.sha, []string{s.name(store.Key{Kind: kind, ID: id})}, nil)
		if err := pipe.Process(ctx, cmds[i]); err != nil {
			return nil, s.fail(op, store.Key{}, err, false)
		}
	}
	// The errors of single commands are looked at below.
	if _, err := pipe.Exec(ctx); err != nil && serverSays(err) == "" {
		return nil, s.fail(op, store.Key{}, err, false)
	}
	var items []store.Listed
	for i, cmd := range cmds {
		it := store.Listed{Record: store.Record{Key: store.Key{Kind: kind, ID: ids[i]}}}
		if r, err := answer(cmd); err == nil {
			it.Record, _, it.Err = loaded(op, it.Record.Key, r)
		} else { // the script is not known there, or the record lies elsewhere now
			it.Record, _, it.Err = s.load(ctx, op, it.Record.Key, s.name(it.Record.Key))
		}
		it.Record.Key = store.Key{Kind: kind, ID: ids[i]}
		if !errors.Is(it.Err, store.ErrNotFound) {
			items = append(items, it)
		}
	}
	return items, nil
}

// delist takes the id of a deleted record out of the index, unless it was made again.
// A failure leaves an id without a record there, which listing passes over.
func (s *Store) delist(ctx context.Context, key store.Key, name string) {
	const op = "delete"
	err := s.srv.commands().ZRem(ctx, format.Index(s.addr.Prefix, key.Kind), key.ID).Err()
	if err == nil {
		if _, _, lerr := s.load(ctx, op, key, name); !errors.Is(lerr, store.ErrNotFound) {
			err = s.enlist(ctx, op, key)
		}
	}
	if err != nil {
		s.log.Warn("the index was not brought up to date", "kind", key.Kind, "id", key.ID, "err", err)
	}
}

// Reindex rebuilds the index of a kind from the records that are there, on every node,
// and tells how many ids it lacked. It may run beside all else.
func (s *Store) Reindex(ctx context.Context, kind store.Kind) (added int, err error) {
	const op = "reindex"
	leave, err := s.start(ctx, op, store.Key{})
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := (store.Key{Kind: kind, ID: "any"}).Validate(); err != nil {
		return 0, err
	}
	err = s.srv.masters(ctx, func(ctx context.Context, n *node) error {
		it := n.ScanType(ctx, 0, format.RecordPattern(s.addr.Prefix, kind), 1000, "hash").Iterator()
		for it.Next(ctx) {
			key, ok := format.ParseRecord(s.addr.Prefix, kind, it.Val())
			if !ok {
				continue
			}
			alive, err := n.HExists(ctx, it.Val(), "birth").Result()
			if err != nil {
				return err
			}
			if !alive {
				continue
			}
			fresh, err := s.srv.commands().ZAdd(ctx, format.Index(s.addr.Prefix, kind), goredis.Z{Member: key.ID}).Result()
			if err != nil {
				return err
			}
			added += int(fresh)
		}
		return it.Err()
	})
	return added, s.fail(op, store.Key{}, err, false)
}
