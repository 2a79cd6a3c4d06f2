package conformance

import (
	"context"
	"errors"
	"sync"

	"github.com/loophost/loophost/host/store"
)

func concurrentCases() []Case {
	return []Case{
		core("S-1/concurrent-creates", "Of many who create one record at once, exactly one succeeds.", concurrentCreates),
		core("S-2/concurrent-commits", "Of many commits that build on one revision, exactly one applies.", concurrentCommits),
		core("S-2/concurrent-acquires", "Of many who acquire a free record at once, exactly one becomes its owner.", concurrentAcquires),
		core("S-2/concurrent-take-overs", "Of many who take a record over at once, exactly one can write afterwards.", concurrentTakeOvers),
		core("S-3/concurrent-retries", "The same commit sent many times at once applies once and gives one ack.", concurrentRetries),
		core("S-12/commit-races-delete", "A commit that races a delete leaves no record behind.", commitRacesDelete),
	}
}

const racers, rounds = 6, 5

// race starts n calls at once, each with a handle of its own.
func race(ctx context.Context, e *Env, n int, call func(i int, s store.Store) error) ([]error, error) {
	handles := make([]store.Store, n)
	for i := range handles {
		var err error
		if handles[i], err = e.Open(ctx); err != nil {
			return nil, err
		}
	}
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, s := range handles {
		wg.Go(func() {
			<-start
			errs[i] = call(i, s)
		})
	}
	close(start)
	wg.Wait()
	return errs, nil
}

// oneWinner checks that exactly one call succeeded and all others failed with a kind.
func oneWinner(what string, errs []error, kinds ...error) (winner int, err error) {
	winner = -1
	n := 0
	var bad []error
	for i, e := range errs {
		if e == nil {
			winner = i
			n++
			continue
		}
		bad = append(bad, wantKind("a loser of "+what, e, kinds...))
	}
	if n != 1 {
		bad = append(bad, failf("%s: want exactly 1 winner of %d, got %d", what, len(errs), n))
	}
	return winner, errors.Join(bad...)
}

func concurrentCreates(ctx context.Context, e *Env) error {
	for range rounds {
		key := e.Key("race " + e.UUID())
		commits := make([]store.Commit, racers)
		for i := range commits {
			commits[i] = store.Commit{ID: e.UUID(), Head: []byte{byte('a' + i)}, Entries: [][]byte{{byte('a' + i)}}}
		}
		acks := make([]store.Ack, racers)
		errs, err := race(ctx, e, racers, func(i int, s store.Store) (err error) {
			acks[i], err = s.Create(ctx, key, commits[i])
			return err
		})
		if err != nil {
			return err
		}
		w, err := oneWinner("concurrent creates", errs, store.ErrExists)
		if err != nil {
			return err
		}
		if err := holdsOnly(ctx, e, key, commits[w], acks[w], 1); err != nil {
			return err
		}
	}
	return nil
}

// holdsOnly checks that the newest state of key is c, acknowledged with ack, and
// that the log ends with c's entries and has length n.
func holdsOnly(ctx context.Context, e *Env, key store.Key, c store.Commit, ack store.Ack, n uint64) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	got, err := look(ctx, s, key)
	if err != nil {
		return err
	}
	if err := errors.Join(
		wantEqual("mark of the winner", got.record.Mark, ack.Mark),
		wantBytes("head of the winner", got.record.Head, c.Head),
		wantEqual("last commit id", got.record.LastCommitID, c.ID),
		wantEqual("log length", uint64(len(got.log)), n),
	); err != nil {
		return err
	}
	return wantBytes("last entry", got.log[n-1].Data, c.Entries[len(c.Entries)-1])
}

func concurrentCommits(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("race"))
	if err != nil {
		return err
	}
	for range rounds {
		commits := make([]store.Commit, racers)
		for i := range commits {
			commits[i] = a.commit()
		}
		acks := make([]store.Ack, racers)
		errs, err := race(ctx, e, racers, func(i int, s store.Store) (err error) {
			acks[i], err = s.Commit(ctx, a.key, a.fence, commits[i])
			return err
		})
		if err != nil {
			return err
		}
		w, err := oneWinner("concurrent commits on one revision", errs, store.ErrConflict)
		if err != nil {
			return err
		}
		want := a.mark.Revision + 1
		a.took(commits[w], acks[w])
		if err := errors.Join(wantEqual("revision", a.mark.Revision, want), holdsOnly(ctx, e, a.key, commits[w], acks[w], a.ack.LogLength)); err != nil {
			return err
		}
	}
	return nil
}

func concurrentAcquires(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.create(ctx, s, e.Key("race"))
	if err != nil {
		return err
	}
	for range rounds {
		claims := make([]store.Claim, racers)
		for i := range claims {
			claims[i] = e.claim()
		}
		fences := make([]store.Fence, racers)
		errs, err := race(ctx, e, racers, func(i int, s store.Store) (err error) {
			fences[i], _, err = s.Acquire(ctx, a.key, claims[i])
			return err
		})
		if err != nil {
			return err
		}
		w, err := oneWinner("concurrent acquires of a free record", errs, store.ErrBusy)
		if err != nil {
			return err
		}
		r, err := s.Load(ctx, a.key)
		if err != nil {
			return failf("load: want success, got %w", err)
		}
		if err := wantEqual("fence of the winner", r.Fence, fences[w]); err != nil {
			return err
		}
		a.fence = fences[w]
		if err := a.advance(ctx, 1); err != nil {
			return failf("the winner commits: %w", err)
		}
		if err := wantOK("the winner releases", s.Release(ctx, a.key, a.fence)); err != nil {
			return err
		}
	}
	return nil
}

func concurrentTakeOvers(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("race"))
	if err != nil {
		return err
	}
	for range rounds {
		claims, commits := make([]store.Claim, racers), make([]store.Commit, racers)
		for i := range claims {
			claims[i], commits[i] = e.force(), a.commit()
		}
		fences := make([]store.Fence, racers)
		errs, err := race(ctx, e, racers, func(i int, s store.Store) (err error) {
			fences[i], _, err = s.Acquire(ctx, a.key, claims[i])
			return err
		})
		if err != nil {
			return err
		}
		if err := errors.Join(errs...); err != nil {
			return failf("concurrent take-overs: want success for all, got %w", err)
		}
		errs = errs[:0]
		var won store.Ack
		for i := range fences {
			ack, err := s.Commit(ctx, a.key, fences[i], commits[i])
			if err == nil {
				won = ack
			}
			errs = append(errs, err)
		}
		w, err := oneWinner("commits after concurrent take-overs", errs, store.ErrFenced)
		if err != nil {
			return err
		}
		a.fence = fences[w]
		a.took(commits[w], won)
	}
	return nil
}

func concurrentRetries(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("retried"))
	if err != nil {
		return err
	}
	for range rounds {
		before := a.ack.LogLength
		c := a.commit()
		acks := make([]store.Ack, racers)
		errs, err := race(ctx, e, racers, func(i int, s store.Store) (err error) {
			acks[i], err = s.Commit(ctx, a.key, a.fence, c)
			return err
		})
		if err != nil {
			return err
		}
		if err := errors.Join(errs...); err != nil {
			return failf("the same commit at once: want success for all, got %w", err)
		}
		for _, ack := range acks[1:] {
			if err := wantAck("acks of one commit", ack, acks[0]); err != nil {
				return err
			}
		}
		a.took(c, acks[0])
		if err := errors.Join(wantEqual("log length", a.ack.LogLength, before+1), holdsOnly(ctx, e, a.key, c, acks[0], before+1)); err != nil {
			return err
		}
	}
	return nil
}

func commitRacesDelete(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	for range rounds {
		a, err := e.owner(ctx, s, e.Key("race "+e.UUID()))
		if err != nil {
			return err
		}
		c := a.commit()
		errs, err := race(ctx, e, 2, func(i int, s store.Store) error {
			if i == 0 {
				return s.Delete(ctx, a.key, a.fence)
			}
			_, err := s.Commit(ctx, a.key, a.fence, c)
			return err
		})
		if err != nil {
			return err
		}
		if errs[1] != nil {
			if err := wantKind("a commit that lost against a delete", errs[1], store.ErrNotFound); err != nil {
				return err
			}
		}
		_, err = s.Load(ctx, a.key)
		if err := errors.Join(wantOK("delete beside a commit", errs[0]), wantKind("load after the delete", err, store.ErrNotFound)); err != nil {
			return err
		}
	}
	return nil
}
