package conform

import (
	"context"
	"io"
	"maps"
	"runtime"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
)

// harness opens handles onto an empty place.
type harness struct {
	open func(context.Context) (store.Store, error)
	env  conformance.Environment
}

// Open opens one more handle.
func (h harness) Open(ctx context.Context) (store.Store, error) { return h.open(ctx) }

// Environment says where it runs.
func (h harness) Environment(context.Context) (conformance.Environment, error) { return h.env, nil }

// spawner can run owners in processes of their own as well.
type spawner struct {
	harness
	url  string
	errs io.Writer // for what an owner's process has to say to people
}

var _ conformance.Spawner = spawner{}

// SpawnOwner starts one more process of this program.
func (h spawner) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	return spawn(h.url, h.errs)
}

// newHarness makes an empty place at the store's URL. done removes it.
func newHarness(env *verb.Env, url string) (h conformance.Harness, done func(), err error) {
	b, err := backend.Find(url)
	if err != nil {
		return nil, nil, err
	}
	if b.Scratch == nil {
		return nil, nil, exit.Usagef("conformance: the backend of %s has no place to run the suite in", backend.Shown(url))
	}
	place, err := b.Scratch(url)
	if err != nil {
		return nil, nil, err
	}
	values := map[string]string{"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	maps.Copy(values, place.Info)
	shared := harness{env: conformance.Environment{Name: place.Name, Values: values}}
	if place.Open != nil {
		shared.open = func(context.Context) (store.Store, error) { return place.Open() }
		return shared, place.Done, nil
	}
	shared.open = func(ctx context.Context) (store.Store, error) {
		s, err := backend.Open(ctx, place.URL, backend.Env{StateDir: env.StateDir(), Logger: env.Logger()})
		return s, err
	}
	return spawner{harness: shared, url: place.URL, errs: env.Err}, place.Done, nil
}
