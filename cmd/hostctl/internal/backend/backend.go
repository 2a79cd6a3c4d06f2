// Package backend lists the storage backends that the command knows. Adding one
// is one line in Known.
package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// Env is what a backend may need besides its URL.
type Env struct {
	StateDir string // the user's state folder; "": not known
	Logger   *slog.Logger
}

// Backend opens the stores of one URL scheme.
type Backend struct {
	Scheme string
	Form   string // of its URLs, for people
	Open   func(ctx context.Context, rest string, env Env) (store.Store, error)
}

// Known lists the backends; the first is the default.
func Known() []Backend {
	return []Backend{
		{Scheme: "fs", Form: "fs: or fs:/path", Open: openFS},
		{Scheme: "memory", Form: "memory:", Open: openMemory},
	}
}

// Open opens the store of a URL; "" is the default backend in the user's state
// folder. A URL that names no store is an *exit.UsageError.
func Open(ctx context.Context, url string, env Env) (store.Store, error) {
	if url == "" {
		url = Known()[0].Scheme + ":"
	}
	scheme, rest, ok := strings.Cut(url, ":")
	var forms []string
	for _, b := range Known() {
		if ok && b.Scheme == scheme {
			return b.Open(ctx, rest, env)
		}
		forms = append(forms, b.Form)
	}
	return nil, exit.Usagef("store %q: want %s", url, strings.Join(forms, ", "))
}

// insist, behind a path, opens a store where locks or flushes can't be trusted.
const insist = "?insist"

func openFS(_ context.Context, rest string, env Env) (store.Store, error) {
	dir, insisted := strings.CutSuffix(strings.TrimPrefix(rest, "//"), insist)
	if dir == "" {
		if env.StateDir == "" {
			return nil, exit.Usagef("store fs: neither HOME nor XDG_STATE_HOME says where your state folder is; name a folder: --store fs:/path")
		}
		dir = filepath.Join(env.StateDir, "store")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("store fs: %w", err)
	}
	s, err := fs.Open(fs.Config{Dir: dir, Insist: insisted, Logger: env.Logger})
	if errors.Is(err, store.ErrUnsupported) && !insisted {
		return nil, fmt.Errorf("%w: --store %s", err, exit.Quote("fs:"+dir+insist))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openMemory(_ context.Context, rest string, _ Env) (store.Store, error) {
	if rest != "" {
		return nil, exit.Usagef("store memory:%s: nothing may follow memory:; such a store ends with the process", rest)
	}
	return memstore.New().Open(), nil
}
