package ticket

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A batch of 1,000 in which each depends on all before it, as far as allowed, is
// searched once, not once for each.
func TestABatchIsSearchedOnce(t *testing.T) {
	looked := map[string]int{}
	s := search{next: func(id string) []string {
		looked[id]++
		n, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for i := max(0, n-MaxDependencies); i < n; i++ {
			out = append(out, strconv.Itoa(i))
		}
		return out
	}}
	for i := range MaxBatch {
		if id, found := s.cycle(strconv.Itoa(MaxBatch - 1 - i)); found {
			t.Fatalf("%s leads back to itself", id)
		}
	}
	for id, n := range looked {
		if n != 1 {
			t.Errorf("%s was looked at %d times, want once", id, n)
		}
	}
	if len(looked) != MaxBatch {
		t.Errorf("got %d, want all %d looked at", len(looked), MaxBatch)
	}
}

// The search agrees with the paths of a graph, found by multiplying it out.
func TestACycleIsFoundWhereverItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 7
		var edge, path [n][n]bool
		next := map[string][]string{}
		for range rapid.IntRange(0, 12).Draw(t, "edges") {
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			edge[from][to] = true
			next[strconv.Itoa(from)] = append(next[strconv.Itoa(from)], strconv.Itoa(to))
		}
		path = edge
		for k := range n {
			for i := range n {
				for j := range n {
					path[i][j] = path[i][j] || path[i][k] && path[k][j]
				}
			}
		}
		want := slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5, 6}, func(i int) bool { return path[i][i] })
		s := search{next: func(id string) []string { return next[id] }}
		got := false
		for i := 0; i < n && !got; i++ {
			id, found := s.cycle(strconv.Itoa(i))
			if got = found; found {
				if k, _ := strconv.Atoi(id); !path[k][k] {
					t.Fatalf("%s is said to lead back to itself, in %v", id, next)
				}
			}
		}
		if got != want {
			t.Fatalf("found a cycle: %t, want %t, in %v", got, want, next)
		}
	})
}
