package verb

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/scope"
)

// ScopeVariable is the environment variable that names the ticket scope.
const ScopeVariable = "LOOPHOST_SCOPE"

// DefaultScope is the ticket scope that is used where none is named.
const DefaultScope = "default"

// ScopeFlag registers --scope.
func ScopeFlag(fs *pflag.FlagSet, id *string) {
	fs.StringVar(id, "scope", "", "ticket scope `ID` (default: "+DefaultScope+"; "+ScopeVariable+")")
}

// ScopeID is the ticket scope in force: the flag, else the environment, else DefaultScope.
func (e *Env) ScopeID(flag string) string {
	for _, id := range []string{flag, e.Getenv(ScopeVariable)} {
		if id != "" {
			return id
		}
	}
	return DefaultScope
}

// BindingOf is what a stored scope is bound to. Errors: store.ErrInvalidID,
// store.ErrNotFound, store.ErrCorrupt.
func BindingOf(ctx context.Context, st store.Store, scopeID string) (ticket.Binding, error) {
	key := store.Key{Kind: store.KindScope, ID: scopeID}
	if err := key.Validate(); err != nil {
		return ticket.Binding{}, err
	}
	rec, err := st.Load(ctx, key)
	if err != nil {
		return ticket.Binding{}, err
	}
	head, err := scope.DecodeHead(rec.Head)
	return head.Binding, err
}

// OpenScope opens a stored scope, whoever supervises it.
func (e *Env) OpenScope(ctx context.Context, st store.Store, scopeID string) (*scope.Scope, error) {
	b, err := BindingOf(ctx, st, scopeID)
	if err != nil {
		return nil, err
	}
	return scope.Open(ctx, st, b, scope.Config{Logger: e.Logger()})
}
