package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/loophost/loophost/host/store"
)

func linearCases() []Case {
	return []Case{
		core("S-1/linearizable", "The answers to many writers and readers at once are those of one record changed by one call after another.", linearizable),
	}
}

const (
	linearClients = 4
	linearCalls   = 14
	linearTime    = 30 * time.Second // for the search
)

// linearIn is one call: a load, or a commit that builds on a revision.
type linearIn struct {
	commit bool
	after  uint64
	id     string
}

// linearOut is its answer: the revision and the last commit that it saw or made.
type linearOut struct {
	applied  bool
	revision uint64 // 0: a refusal that does not name it
	last     string // of a load
}

type linearState struct {
	revision uint64
	last     string
}

func linearModel(start linearState) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(linearState), input.(linearIn), output.(linearOut)
			switch {
			case !in.commit:
				return out.revision == s.revision && out.last == s.last, s
			case out.applied:
				return in.after == s.revision && out.revision == s.revision+1, linearState{out.revision, in.id}
			default:
				return in.after != s.revision && out.revision == s.revision, s
			}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v gave %+v", input, output) },
	}
}

func linearizable(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.SharedKey("linear"))
	if err != nil {
		return err
	}
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
	)
	errs := make([]error, linearClients)
	zero := time.Now()
	record := func(client int, call int64, in linearIn, out linearOut) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: int64(time.Since(zero))})
	}
	for i := range linearClients {
		h, err := e.Open(ctx)
		if err != nil {
			return errors.Join(err, waitAll(&wg, errs))
		}
		// Each client draws from its own stream, so that scheduling changes no choice.
		r := rand.New(rand.NewPCG(e.Rand.Uint64(), e.Rand.Uint64()))
		ids := make([]string, linearCalls)
		for j := range ids {
			ids[j] = e.UUID()
		}
		wg.Go(func() {
			known := a.mark.Revision
			for _, id := range ids {
				call := int64(time.Since(zero))
				if r.IntN(3) == 0 {
					rec, err := h.Load(ctx, a.key)
					if err != nil {
						errs[i] = failf("load: want success, got %w", err)
						return
					}
					known = rec.Mark.Revision
					record(i, call, linearIn{}, linearOut{revision: known, last: rec.LastCommitID})
					continue
				}
				in := linearIn{commit: true, after: known, id: id}
				ack, err := h.Commit(ctx, a.key, a.fence, store.Commit{ID: id, After: store.Mark{Birth: a.mark.Birth, Revision: known}, Head: []byte(id), Entries: [][]byte{[]byte(id)}})
				switch {
				case err == nil:
					known = ack.Mark.Revision
					record(i, call, in, linearOut{applied: true, revision: known})
				case errors.Is(err, store.ErrConflict):
					known = asError(err).Revision
					record(i, call, in, linearOut{revision: known})
				default:
					errs[i] = failf("commit: want success or a conflict, got %w", err)
					return
				}
			}
		})
	}
	if err := waitAll(&wg, errs); err != nil {
		return err
	}
	start := linearState{a.mark.Revision, a.last.ID}
	if res := porcupine.CheckOperationsTimeout(linearModel(start), history, linearTime); res != porcupine.Ok {
		return failf("the history of %d calls by %d writers: want a linearizable one, got %s", len(history), linearClients, res)
	}
	return logMatches(ctx, s, a, history)
}

func waitAll(wg *sync.WaitGroup, errs []error) error {
	wg.Wait()
	return errors.Join(errs...)
}

// logMatches checks that the log holds each applied commit once, in the order of the acks.
func logMatches(ctx context.Context, s store.Store, a *actor, history []porcupine.Operation) error {
	got, err := look(ctx, s, a.key)
	if err != nil {
		return err
	}
	byRevision := map[uint64]string{}
	for _, op := range history {
		if out := op.Output.(linearOut); out.applied {
			byRevision[out.revision] = op.Input.(linearIn).id
		}
	}
	bad := []error{wantEqual("log entries", len(got.log), len(byRevision)+1)}
	for _, en := range got.log[min(1, len(got.log)):] {
		bad = append(bad, wantBytes(fmt.Sprintf("the entry of revision %d", en.Revision), en.Data, []byte(byRevision[en.Revision])))
	}
	return errors.Join(bad...)
}
