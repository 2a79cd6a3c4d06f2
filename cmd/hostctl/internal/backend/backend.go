// Package backend lists the storage backends that the command knows. Adding one
// is one line in Known.
package backend

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/loophost/loophost/backends/redis"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
)

// Env is what a backend may need besides its URL.
type Env struct {
	StateDir string // the user's state folder; "": not known
	Logger   *slog.Logger
}

// Backend opens the stores of some URL schemes.
type Backend struct {
	Schemes []string
	Form    string // of its URLs, for people
	Open    func(ctx context.Context, url string, env Env) (store.Store, error)
	// Scratch makes a place at a URL where nothing is yet, for the conformance suite.
	Scratch func(url string) (Scratch, error)
}

// Scratch is an empty place.
type Scratch struct {
	URL string // opens it, also from another process; "": no other process can
	// Open opens one more handle onto it; nil: by the URL.
	Open func() (store.Store, error)
	Name string            // the backend's, for the report
	Info map[string]string // for the report
	Done func()            // removes it
}

// Known lists the backends; the first is the default.
func Known() []Backend {
	return []Backend{
		{Schemes: []string{"fs"}, Form: "fs: or fs:/path", Open: openFS, Scratch: scratchFS},
		{Schemes: []string{"memory"}, Form: "memory:", Open: openMemory, Scratch: scratchMemory},
		{Schemes: redis.Schemes(), Form: "redis://host:port/db (also rediss://, unix://, redis+sentinel://, redis+cluster://)", Open: openRedis, Scratch: scratchRedis},
	}
}

// Find is the backend of a URL; "" is the default. A URL that names none is an
// *exit.UsageError.
func Find(url string) (Backend, error) {
	if url == "" {
		return Known()[0], nil
	}
	scheme, _, ok := strings.Cut(url, ":")
	var forms []string
	for _, b := range Known() {
		if ok && slices.Contains(b.Schemes, scheme) {
			return b, nil
		}
		forms = append(forms, b.Form)
	}
	return Backend{}, exit.Usagef("store %q: want %s", Shown(url), strings.Join(forms, ", "))
}

// Open opens the store of a URL; "" is the default backend in the user's state
// folder. A URL that names no store is an *exit.UsageError.
func Open(ctx context.Context, url string, env Env) (store.Store, error) {
	b, err := Find(url)
	if err != nil {
		return nil, err
	}
	return b.Open(ctx, url, env)
}

// Shown is a URL for people: a password in it is masked.
func Shown(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	user, _, secret := strings.Cut(rest[:max(at, 0)], ":")
	if !secret {
		return url
	}
	return scheme + "://" + user + ":PASSWORD" + rest[at:]
}
