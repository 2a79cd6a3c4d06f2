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

// Artifacts keeps contents of 1 byte to ticket.MaxArtifactBytes by their hash. It is
// safe for many goroutines.
type Artifacts struct{ reader }

// NewArtifacts keeps artifacts in st. Of cfg, Require and Timeout count.
func NewArtifacts(st store.Store, cfg Config) *Artifacts {
	return &Artifacts{reader{st, cfg.filled()}}
}

func artifactKey(hash string) store.Key { return store.Key{Kind: KindArtifact, ID: hash} }

// Put stores data, unless it is there already: then what is there is verified.
// Errors: ticket.InvalidTransition for no byte, ticket.ContextBudgetExceeded for too
// many, store.ErrCorrupt where the stored content is damaged.
func (a *Artifacts) Put(ctx context.Context, data []byte) (ticket.Artifact, error) {
	hash := canon.Hash(data)
	key := artifactKey(hash)
	switch {
	case len(data) == 0:
		return ticket.Artifact{}, &ticket.Error{Op: "artifact", Kind: ticket.InvalidTransition, Detail: "it is empty; it needs at least 1 byte"}
	case len(data) > ticket.MaxArtifactBytes:
		return ticket.Artifact{}, &ticket.Error{Op: "artifact", Key: hash, Kind: ticket.ContextBudgetExceeded, Detail: fmt.Sprintf("it has %d bytes; at most %d are allowed", len(data), ticket.MaxArtifactBytes)}
	}
	head := fmt.Appendf(nil, `{"schema":%d,"bytes":%d}`, HeadSchema, len(data))
	err := a.makeRecord(ctx, key, store.Commit{ID: uuid.NewString(), Head: head, Entries: [][]byte{data}, Require: a.cfg.Require})
	if errors.Is(err, store.ErrExists) {
		_, err = a.Get(ctx, hash)
	}
	if err != nil {
		return ticket.Artifact{}, err
	}
	return ticket.Artifact{URI: key.String(), SHA256: hash}, nil
}

// Get is the content of a hash, verified. Errors: store.ErrInvalidID where it is no
// SHA-256 in lower-case hex, store.ErrNotFound, store.ErrCorrupt.
func (a *Artifacts) Get(ctx context.Context, hash string) ([]byte, error) {
	key := artifactKey(hash)
	if !isHash(hash) {
		return nil, &store.Error{Op: "get", Key: key, Kind: store.ErrInvalidID, Detail: "an artifact is named by the SHA-256 of its content in lower-case hex"}
	}
	page, err := a.page(ctx, key, 1)
	if err != nil {
		return nil, err
	}
	if len(page.Entries) != 1 || page.Length != 1 || canon.Hash(page.Entries[0].Data) != hash {
		return nil, &store.Error{Op: "get", Key: key, Kind: store.ErrCorrupt, Detail: "what is stored does not have this hash"}
	}
	return page.Entries[0].Data, nil
}
