package pmap_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loophost/loophost/host/ticket/internal/pmap"
)

func TestItIsAMapWhoseOldVersionsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m pmap.Map[int]
		model := map[string]int{}
		type version struct {
			m     pmap.Map[int]
			model map[string]int
		}
		var versions []version
		keys := rapid.SampledFrom([]string{"", "a", "b", "\x00", "é", "zz"})
		key := rapid.OneOf(keys, rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 400).Draw(t, "n")) }))
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			k := key.Draw(t, "key")
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				m = m.Delete(k)
				delete(model, k)
			} else {
				v := rapid.Int().Draw(t, "value")
				m = m.Put(k, v)
				model[k] = v
			}
			if rapid.IntRange(0, 50).Draw(t, "keep") == 0 {
				versions = append(versions, version{m, maps.Clone(model)})
			}
		}
		for _, v := range append(versions, version{m, model}) {
			if got := maps.Collect(v.m.All()); !maps.Equal(got, v.model) || v.m.Len() != len(v.model) {
				t.Fatalf("got %v (len %d), want %v", got, v.m.Len(), v.model)
			}
			var order []string
			for k := range v.m.All() {
				order = append(order, k)
			}
			if !slices.IsSorted(order) {
				t.Fatalf("got the keys %q, want them sorted", order)
			}
			for k, want := range v.model {
				if got, ok := v.m.Get(k); !ok || got != want {
					t.Fatalf("Get(%q) = %d, %v; want %d", k, got, ok, want)
				}
			}
			if _, ok := v.m.Get("absent"); ok {
				t.Fatal("Get of an absent key found it")
			}
		}
	})
}

func TestAWalkCanEndEarly(t *testing.T) {
	var m pmap.Map[int]
	for i := range 200 {
		m = m.Put(fmt.Sprintf("%03d", i), i)
	}
	seen := 0
	for range m.All() {
		if seen++; seen == 70 {
			break
		}
	}
	if seen != 70 {
		t.Errorf("the walk saw %d keys, want 70", seen)
	}
}
