package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

// slow is a queue as its rules are told: a list, looked through from its beginning.
type slow struct{ items []*slowItem }

type slowItem struct {
	id, token string
	delivery  uint64
	expires   time.Time
}

func (s *slow) by(token string) int {
	return slices.IndexFunc(s.items, func(i *slowItem) bool { return token != "" && i.token == token })
}

// next gives the items whose lease ran out in any order, and those that wait in theirs.
func (s *slow) next(now time.Time) (over map[string]bool, waiting []string) {
	over = map[string]bool{}
	for _, i := range s.items {
		switch {
		case i.token == "":
			waiting = append(waiting, i.id)
		case !now.Before(i.expires):
			over[i.id] = true
		}
	}
	return over, waiting
}

// Whatever is done to it, a Queue is what the slow one is.
func TestAQueueIsTheListThatItStandsFor(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var q ledger.Queue[int]
		var s slow
		now := time.Unix(1000, 0)
		tokens := []string{"", "none"}
		for step := range 600 {
			id, token := fmt.Sprint(rnd.IntN(12)), tokens[rnd.IntN(len(tokens))]
			at := s.by(token)
			what := ""
			switch rnd.IntN(7) {
			case 0, 1:
				what = "add " + id
				there := slices.ContainsFunc(s.items, func(i *slowItem) bool { return i.id == id })
				if q.Has(id) != there {
					t.Fatalf("seed %d, step %d: has %s: got %v, want %v", seed, step, id, q.Has(id), there)
				}
				if !there {
					q.Add(id, step, 0)
					s.items = append(s.items, &slowItem{id: id})
				}
			case 2, 3:
				what = "lease"
				over, waiting := s.next(now)
				max := 1 + rnd.IntN(4)
				units := q.Next(now, max)
				if want := min(max, len(over)+len(waiting)); len(units) != want {
					t.Fatalf("seed %d, step %d: got %d items, want %d", seed, step, len(units), want)
				}
				for n, u := range units {
					if n < len(over) && !over[u.ID] || n >= len(over) && u.ID != waiting[n-len(over)] {
						t.Fatalf("seed %d, step %d: got %s at place %d, want one of %v and then %v", seed, step, u.ID, n, over, waiting)
					}
				}
				for _, u := range units {
					token, expires := fmt.Sprint("token ", len(tokens)), now.Add(time.Duration(rnd.IntN(5))*time.Second)
					tokens = append(tokens, token)
					q.Hold(u.ID, token, "w", expires)
					i := s.items[slices.IndexFunc(s.items, func(i *slowItem) bool { return i.id == u.ID })]
					i.token, i.expires = token, expires
					if i.delivery++; u.Delivery != i.delivery {
						t.Fatalf("seed %d, step %d: got delivery %d of %s, want %d", seed, step, u.Delivery, u.ID, i.delivery)
					}
				}
			case 4:
				what = "extend " + token
				expires := now.Add(time.Duration(rnd.IntN(5)) * time.Second)
				if q.Extend(token, expires) != (at >= 0) {
					t.Fatalf("seed %d, step %d: extend by %q: want %v", seed, step, token, at >= 0)
				}
				if at >= 0 {
					s.items[at].expires = expires
				}
			case 5:
				what = "done " + token
				if q.Remove(token) != (at >= 0) {
					t.Fatalf("seed %d, step %d: done by %q: want %v", seed, step, token, at >= 0)
				}
				if at >= 0 {
					s.items = slices.Delete(s.items, at, at+1)
				}
			default:
				what = "return " + token
				if q.Back(token) != (at >= 0) {
					t.Fatalf("seed %d, step %d: return by %q: want %v", seed, step, token, at >= 0)
				}
				if at >= 0 {
					i := s.items[at]
					i.token = ""
					s.items = append(slices.Delete(s.items, at, at+1), i)
				}
			}
			over, waiting := s.next(now)
			want := store.Backlog{Waiting: uint64(len(over) + len(waiting)), Leased: uint64(len(s.items) - len(over) - len(waiting))}
			if got := q.Backlog(now); got != want || q.Len() != len(s.items) {
				t.Fatalf("seed %d, step %d, %s: got %+v of %d, want %+v of %d", seed, step, what, got, q.Len(), want, len(s.items))
			}
			soonest := time.Time{}
			for _, i := range s.items {
				if i.token != "" && (soonest.IsZero() || i.expires.Before(soonest)) {
					soonest = i.expires
				}
			}
			if got := q.Soonest(); !got.Equal(soonest) {
				t.Fatalf("seed %d, step %d, %s: got the first end %v, want %v", seed, step, what, got, soonest)
			}
			now = now.Add(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		}
	}
}
