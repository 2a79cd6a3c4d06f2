package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
)

// insist, behind a path, opens a store where locks or flushes can't be trusted.
const insist = "?insist"

func openFS(_ context.Context, url string, env Env) (store.Store, error) {
	_, rest, _ := strings.Cut(url, ":")
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

// scratchFS is a new folder below the one that the URL names, or below the system's
// temporary one.
func scratchFS(url string) (Scratch, error) {
	_, rest, _ := strings.Cut(url, ":")
	base := strings.TrimPrefix(rest, "//")
	if base == "" {
		base = os.TempDir()
	}
	dir, err := os.MkdirTemp(base, "loophost-conformance-")
	if err != nil {
		return Scratch{}, exit.Usagef("conformance fs: %w", err)
	}
	return Scratch{
		URL: "fs:" + filepath.Join(dir, "store"), Name: "fs", Info: map[string]string{"folder": dir},
		Done: func() { _ = os.RemoveAll(dir) }, // what is left of it is a temporary folder
	}, nil
}
