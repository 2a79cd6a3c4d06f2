package fs

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
)

// wreck is one state of the whole disk after a power loss; nil is a folder.
type wreck map[string][]byte

// wrecks gives each of the states that a power loss may leave now: every first part
// of a folder's unflushed names with every content of the unflushed files.
func (p *platters) wrecks(rnd *rand.Rand, yield func(wreck)) {
	var folders []*folder
	var files []*inode
	p.each(p.root, map[any]bool{}, func(x any) {
		switch x := x.(type) {
		case *folder:
			if len(x.pending) > 0 {
				folders = append(folders, x)
			}
		case *inode:
			if len(x.pending) > 0 {
				files = append(files, x)
			}
		}
	})
	var sizes []int
	contents := make([][][]byte, len(files))
	for _, f := range folders {
		sizes = append(sizes, len(f.pending)+1)
	}
	for i, f := range files {
		contents[i] = f.left(rnd, p.effort)
		sizes = append(sizes, len(contents[i]))
	}
	for _, choice := range choices(sizes, rnd, p.effort.together) {
		names, data := map[*folder]int{}, map[*inode][]byte{}
		for i, f := range folders {
			names[f] = choice[i]
		}
		for i, f := range files {
			data[f] = contents[i][choice[len(folders)+i]]
		}
		w := wreck{}
		w.add(p.root, "", names, data)
		yield(w)
	}
}

// each visits what is on the disk or may be there after a power loss, once.
func (p *platters) each(x any, seen map[any]bool, visit func(any)) {
	if seen[x] {
		return
	}
	seen[x] = true
	visit(x)
	f, ok := x.(*folder)
	if !ok {
		return
	}
	for _, names := range []map[string]any{f.durable, f.now} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			p.each(names[name], seen, visit)
		}
	}
	for _, r := range f.pending {
		if r.what != nil {
			p.each(r.what, seen, visit)
		}
	}
}

// choices are all vectors below sizes, or, where they are too many, all that differ
// in one place from the first and from the last, and some at random.
func choices(sizes []int, rnd *rand.Rand, most int) [][]int {
	all := 1
	for _, n := range sizes {
		if all *= n; all > most {
			break
		}
	}
	if all <= most {
		out := [][]int{{}}
		for _, n := range sizes {
			var next [][]int
			for _, c := range out {
				for i := range n {
					next = append(next, append(slices.Clone(c), i))
				}
			}
			out = next
		}
		return out
	}
	first, last := make([]int, len(sizes)), make([]int, len(sizes))
	for i, n := range sizes {
		last[i] = n - 1
	}
	var out [][]int
	for _, base := range [][]int{first, last} {
		for i, n := range sizes {
			for v := range n {
				c := slices.Clone(base)
				c[i] = v
				out = append(out, c)
			}
		}
	}
	for range most / 4 {
		c := make([]int, len(sizes))
		for i, n := range sizes {
			c[i] = rnd.IntN(n)
		}
		out = append(out, c)
	}
	return out
}

func (w wreck) add(f *folder, path string, names map[*folder]int, data map[*inode][]byte) {
	entries := f.durable
	if len(f.pending) > 0 {
		entries = maps.Clone(f.durable)
		for _, r := range f.pending[:names[f]] {
			r.in(entries)
		}
	}
	for name, x := range entries {
		at := filepath.Join(path, name)
		switch x := x.(type) {
		case *folder:
			w[at] = nil
			w.add(x, at, names, data)
		case *inode:
			b, chosen := data[x]
			if !chosen {
				b = x.durable
			}
			w[at] = append(make([]byte, 0, len(b)), b...)
		}
	}
}

// sum identifies the state.
func (w wreck) sum() [32]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(w)) {
		fmt.Fprintf(h, "%q %t %d\n", name, w[name] == nil, len(w[name]))
		h.Write(w[name])
	}
	return [32]byte(h.Sum(nil))
}

// write puts the state into dir.
func (w wreck) write(t testing.TB, dir string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(w)) {
		path := filepath.Join(dir, name)
		err := error(nil)
		if w[name] == nil {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, w[name], 0o600)
		}
		wantKind(t, "lay out the wreck", err, nil)
	}
}

// kind says which files are there, and whether a journal ends blank: states of one
// kind recover in much the same way.
func (w wreck) kind() string {
	var names []string
	for name, b := range w {
		name = filepath.Base(name)
		if b == nil {
			continue
		}
		for _, prefix := range []string{"owner-", signalPrefix, tornPrefix, disk.TempPrefix} {
			if strings.HasPrefix(name, prefix) {
				name = prefix
			}
		}
		if strings.HasPrefix(name, "journal-") {
			name += fmt.Sprint(isBlank(b[max(0, len(b)-2):]), strings.Count(string(b), format.HeaderStart), len(b)%sector == 0)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// platters is a disk that holds w, all of it flushed.
func (w wreck) platters() *platters {
	p := newPlatters(brisk)
	for _, name := range slices.Sorted(maps.Keys(w)) {
		f := p.folder(filepath.Dir(name))
		var x any = newFolder()
		if b := w[name]; b != nil {
			x = &inode{durable: b, now: bytes.Clone(b)}
		}
		f.durable[filepath.Base(name)], f.now[filepath.Base(name)] = x, x
	}
	return p
}
