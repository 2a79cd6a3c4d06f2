package conform

import (
	"context"
	"maps"
	"runtime"

	"github.com/loophost/loophost/cmd/hostctl/internal/backend"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
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
	url string
}

var _ conformance.Spawner = spawner{}

// SpawnOwner starts one more process of this program.
func (h spawner) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	return spawn(h.url)
}

// newHarness makes an empty place at the store's URL. done removes it.
func newHarness(url string) (h conformance.Harness, done func(), err error) {
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
	// Without a logger: what a store would warn of is what the suite does to it.
	shared.open = func(ctx context.Context) (store.Store, error) {
		return backend.Open(ctx, place.URL, backend.Env{})
	}
	return spawner{harness: shared, url: place.URL}, place.Done, nil
}
