// Package pmap is an ordered map that never changes: Put and Delete give a new
// map that shares all but one path with the old one. A reader of the old map
// needs no lock, and a writer pays O(log n) whatever the size.
//
//	Map ──▶ inner [first key of each child] ──▶ … ──▶ leaf [keys, values]
//
// It is a B+ tree. Nodes split when full; an emptied node goes, but half-empty
// ones are not merged, since what is kept here mostly grows.
package pmap

import (
	"iter"
	"slices"
	"sort"
)

const width = 32 // keys in a node at most

// Map maps strings to values, ordered by the bytes of the key. The zero value is
// an empty map.
type Map[V any] struct {
	root *node[V]
	n    int
}

type node[V any] struct {
	keys []string // of a leaf: its keys; of an inner node: the least key of each kid
	vals []V
	kids []*node[V] // nil: a leaf
}

// Len is how many keys m has.
func (m Map[V]) Len() int { return m.n }

// Get is the value of key.
func (m Map[V]) Get(key string) (value V, ok bool) {
	for n := m.root; n != nil; {
		if n.kids != nil {
			n = n.kids[n.kid(key)]
			continue
		}
		if i, found := slices.BinarySearch(n.keys, key); found {
			return n.vals[i], true
		}
		break
	}
	return value, false
}

// kid is the child of an inner node that would hold key.
func (n *node[V]) kid(key string) int {
	i := sort.Search(len(n.keys), func(i int) bool { return n.keys[i] > key })
	return max(0, i-1)
}

// Put is m with value under key.
func (m Map[V]) Put(key string, value V) Map[V] {
	if m.root == nil {
		return Map[V]{root: &node[V]{keys: []string{key}, vals: []V{value}}, n: 1}
	}
	left, right, added := m.root.put(key, value)
	if added {
		m.n++
	}
	m.root = left
	if right != nil {
		m.root = &node[V]{keys: []string{left.keys[0], right.keys[0]}, kids: []*node[V]{left, right}}
	}
	return m
}

func (n *node[V]) put(key string, value V) (left, right *node[V], added bool) {
	if n.kids == nil {
		i, found := slices.BinarySearch(n.keys, key)
		if found {
			vals := slices.Clone(n.vals)
			vals[i] = value
			return &node[V]{keys: n.keys, vals: vals}, nil, false
		}
		left, right = split(&node[V]{keys: inserted(n.keys, i, key), vals: inserted(n.vals, i, value)})
		return left, right, true
	}
	i := n.kid(key)
	kid, sibling, added := n.kids[i].put(key, value)
	c := n.with(i, kid)
	if sibling != nil {
		c.keys, c.kids = inserted(c.keys, i+1, sibling.keys[0]), inserted(c.kids, i+1, sibling)
	}
	left, right = split(c)
	return left, right, added
}

// with is the inner node n with another i-th child. Nearly always the child begins as the
// one before it did, and the keys, most of what a node holds, are shared.
func (n *node[V]) with(i int, kid *node[V]) *node[V] {
	c := &node[V]{keys: n.keys, kids: slices.Clone(n.kids)}
	c.kids[i] = kid
	if n.keys[i] != kid.keys[0] {
		c.keys = slices.Clone(n.keys)
		c.keys[i] = kid.keys[0]
	}
	return c
}

// split halves a node that is too wide.
func split[V any](n *node[V]) (left, right *node[V]) {
	if len(n.keys) <= width {
		return n, nil
	}
	h := len(n.keys) / 2
	left, right = &node[V]{keys: n.keys[:h:h]}, &node[V]{keys: n.keys[h:]}
	if n.kids != nil {
		left.kids, right.kids = n.kids[:h:h], n.kids[h:]
	} else {
		left.vals, right.vals = n.vals[:h:h], n.vals[h:]
	}
	return left, right
}

// Delete is m without key.
func (m Map[V]) Delete(key string) Map[V] {
	if _, ok := m.Get(key); !ok {
		return m
	}
	m.root = m.root.without(key)
	m.n--
	return m
}

// without is n less key, which it has; nil when nothing is left.
func (n *node[V]) without(key string) *node[V] {
	if n.kids == nil {
		if len(n.keys) == 1 {
			return nil
		}
		i, _ := slices.BinarySearch(n.keys, key)
		return &node[V]{keys: removed(n.keys, i), vals: removed(n.vals, i)}
	}
	i := n.kid(key)
	kid := n.kids[i].without(key)
	switch {
	case kid != nil:
		return n.with(i, kid)
	case len(n.kids) == 1:
		return nil
	default:
		return &node[V]{keys: removed(n.keys, i), kids: removed(n.kids, i)}
	}
}

// All walks the keys in order.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.root != nil {
			m.root.walk(yield)
		}
	}
}

func (n *node[V]) walk(yield func(string, V) bool) bool {
	for _, k := range n.kids {
		if !k.walk(yield) {
			return false
		}
	}
	for i := range n.vals {
		if !yield(n.keys[i], n.vals[i]) {
			return false
		}
	}
	return true
}

func inserted[T any](s []T, i int, v T) []T {
	out := make([]T, 0, len(s)+1)
	out = append(append(out, s[:i]...), v)
	return append(out, s[i:]...)
}

func removed[T any](s []T, i int) []T {
	out := make([]T, 0, len(s)-1)
	return append(append(out, s[:i]...), s[i+1:]...)
}
