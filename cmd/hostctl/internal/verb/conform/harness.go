package conform

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

// harness opens handles onto one store's data.
type harness struct {
	open func() (store.Store, error)
	env  conformance.Environment
}

// Open opens one more handle.
func (h harness) Open(context.Context) (store.Store, error) { return h.open() }

// Environment says where it runs.
func (h harness) Environment(context.Context) (conformance.Environment, error) { return h.env, nil }

// fsHarness can run owners in processes of their own as well.
type fsHarness struct {
	harness
	url  string
	errs io.Writer // for what an owner's process has to say to people
}

var _ conformance.Spawner = fsHarness{}

// SpawnOwner starts one more process of this program.
func (h fsHarness) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	return spawn(h.url, h.errs)
}

// newHarness reads the store's URL. done removes what the harness made.
func newHarness(url string, errs io.Writer) (h conformance.Harness, done func(), err error) {
	values := map[string]string{"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "memory":
		data := memstore.New()
		return harness{
			open: func() (store.Store, error) { return data.Open(), nil },
			env:  conformance.Environment{Name: "memory", Values: values},
		}, func() {}, nil
	case "fs":
		base := strings.TrimPrefix(rest, "//")
		if base == "" {
			base = os.TempDir()
		}
		dir, err := os.MkdirTemp(base, "loophost-conformance-")
		if err != nil {
			return h, nil, exit.Usagef("conformance fs: %w", err)
		}
		values["folder"] = dir
		place := filepath.Join(dir, "store")
		shared := harness{
			open: func() (store.Store, error) {
				s, err := fs.Open(fs.Config{Dir: place})
				if err != nil {
					return nil, err
				}
				return s, nil
			},
			env: conformance.Environment{Name: "fs", Values: values},
		}
		return fsHarness{harness: shared, url: "fs:" + place, errs: errs}, func() { _ = os.RemoveAll(dir) }, nil
	}
	return h, nil, exit.Usagef("conformance: store %q: want memory: or fs:DIR", url)
}
