package memstore

import (
	"context"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

// handle is the port over an engine, with what memory can do beyond it.
type handle struct {
	*ledger.Store
	engine *engine
}

var (
	_ store.Store         = (*handle)(nil)
	_ store.SignalWatcher = (*handle)(nil)
	_ store.Checker       = (*handle)(nil)
)

// on runs f under the mutex with the record of key.
func (h *handle) on(ctx context.Context, op string, key store.Key, f func(*record) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := key.Validate(); err != nil {
		return err
	}
	return ledger.Error(ctx, op, key, h.engine.locked(func() error {
		r := h.engine.m.records[key]
		if r == nil {
			return ledger.NotFound(op, key, h.engine.m.graves[key] != 0)
		}
		return f(r)
	}))
}
