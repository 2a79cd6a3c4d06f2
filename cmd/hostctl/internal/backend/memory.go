package backend

import (
	"context"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/memstore"
)

const memoryURL = "memory:"

func openMemory(_ context.Context, url string, _ Env) (store.Store, error) {
	if url != memoryURL {
		return nil, exit.Usagef("store %s: nothing may follow memory:; such a store ends with the process", url)
	}
	return memstore.New().Open(), nil
}

func scratchMemory(url string) (Scratch, error) {
	if url != memoryURL {
		return Scratch{}, exit.Usagef("store %s: nothing may follow memory:", url)
	}
	data := memstore.New()
	return Scratch{Name: "memory", Open: func() (store.Store, error) { return data.Open(), nil }, Done: func() {}}, nil
}
