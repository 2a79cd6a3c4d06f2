package fs

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/loophost/loophost/backends/fs/internal/disk"
)

// recording keeps the changes below base.
type recording struct {
	base string
	deaf func(disk.Change) bool // flushes that do nothing, for tests of this layer; nil: none

	mu      sync.Mutex
	changes []disk.Change
}

func (r *recording) Record(c disk.Change) {
	if r.deaf != nil && r.deaf(c) {
		return
	}
	c.Data = bytes.Clone(c.Data)
	for _, p := range []*string{&c.Path, &c.To} {
		if *p != "" {
			rel, err := filepath.Rel(r.base, *p)
			if err != nil || strings.HasPrefix(rel, "..") {
				return // not ours: what the base lies in
			}
			*p = rel
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
}

func (r *recording) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changes)
}

// inode is a file on the model's disk: what a power loss leaves for sure, and the
// changes since, of which it may leave any first part, and a part of the next.
type inode struct {
	durable []byte
	pending []disk.Change // wrote (with a real offset), truncated
	now     []byte
}

// folder is the same for names. Its values are *inode or *folder.
type folder struct {
	durable map[string]any
	pending []renaming
	now     map[string]any
}

// renaming takes a name away, gives it to something, or both at once.
type renaming struct {
	gone, come string
	what       any
}

func newFolder() *folder { return &folder{durable: map[string]any{}, now: map[string]any{}} }

func (r renaming) in(names map[string]any) {
	if r.gone != "" {
		delete(names, r.gone)
	}
	if r.come != "" {
		names[r.come] = r.what
	}
}

func (f *folder) change(r renaming) {
	r.in(f.now)
	f.pending = append(f.pending, r)
}

// handle is an open file.
type handle struct {
	of     *inode
	pos    int
	append bool
}

// platters is the model's disk.
type platters struct {
	root   *folder
	open   map[*os.File]*handle
	effort effort
}

func newPlatters(e effort) *platters {
	return &platters{root: newFolder(), open: map[*os.File]*handle{}, effort: e}
}

func (p *platters) folder(path string) *folder {
	at := p.root
	if path == "." {
		return at
	}
	for _, name := range strings.Split(path, "/") {
		at = at.now[name].(*folder)
	}
	return at
}

// apply takes one change in.
func (p *platters) apply(c disk.Change) {
	dir, name := filepath.Split(c.Path)
	dir = filepath.Clean(dir)
	switch c.Kind {
	case disk.Made:
		p.folder(dir).change(renaming{come: name, what: newFolder()})
	case disk.Removed:
		p.folder(dir).change(renaming{gone: name})
	case disk.Renamed:
		f := p.folder(dir)
		f.change(renaming{gone: name, come: filepath.Base(c.To), what: f.now[name]})
	case disk.SyncedDir:
		f := p.folder(c.Path)
		f.durable, f.pending = maps.Clone(f.now), nil
	case disk.Opened:
		f := p.folder(dir)
		file, there := f.now[name].(*inode)
		if !there {
			file = &inode{}
			f.change(renaming{come: name, what: file})
		}
		if c.Flag&os.O_TRUNC != 0 && len(file.now) > 0 {
			file.change(disk.Change{Kind: disk.Truncated})
		}
		p.open[c.File] = &handle{of: file, append: c.Flag&os.O_APPEND != 0}
	case disk.Wrote:
		h := p.open[c.File]
		if c.Off == disk.InOrder {
			if h.append {
				h.pos = len(h.of.now)
			}
			c.Off = int64(h.pos)
			h.pos += len(c.Data)
		}
		h.of.change(c)
	case disk.Truncated:
		p.open[c.File].of.change(c)
	case disk.Synced:
		f := p.open[c.File].of
		f.durable, f.pending = bytes.Clone(f.now), nil
	case disk.SyncedPart:
		p.open[c.File].of.syncPart(c)
	}
}

// syncPart makes what stands where c says durable, and leaves the rest as uncertain as
// it was: of the writes before, what lies elsewhere is still on its way.
func (f *inode) syncPart(c disk.Change) {
	from, to := c.Off, c.Off+int64(len(c.Data))
	c.Data = f.now[from:to]
	f.durable = written(bytes.Clone(f.durable), c)
	var left []disk.Change
	for _, p := range f.pending {
		if p.Kind != disk.Wrote {
			left = append(left, p)
			continue
		}
		end := p.Off + int64(len(p.Data))
		if cut := min(end, from) - p.Off; cut > 0 {
			left = append(left, disk.Change{Kind: disk.Wrote, Off: p.Off, Data: p.Data[:cut]})
		}
		if at := max(p.Off, to); at < end {
			left = append(left, disk.Change{Kind: disk.Wrote, Off: at, Data: p.Data[at-p.Off:]})
		}
	}
	f.pending = left
}

func (f *inode) change(c disk.Change) {
	f.now = written(bytes.Clone(f.now), c)
	f.pending = append(f.pending, c)
}

// written is what c makes of b.
func written(b []byte, c disk.Change) []byte {
	if c.Kind == disk.Truncated {
		if n := int(c.Off) - len(b); n > 0 {
			b = append(b, make([]byte, n)...)
		}
		return b[:c.Off]
	}
	if n := int(c.Off) + len(c.Data) - len(b); n > 0 {
		b = append(b, make([]byte, n)...)
	}
	copy(b[c.Off:], c.Data)
	return b
}

// effort bounds what is tried where there is too much: some are drawn at random then.
type effort struct {
	torn     int // parts of one write
	shuffled int // mixtures of sectors of several writes
	together int // combinations of what files and folders may be left with
}

var thorough, brisk = effort{torn: 24, shuffled: 6, together: 96}, effort{torn: 4, shuffled: 1, together: 8}

// left are the contents that a power loss may leave of f, the durable one first.
func (f *inode) left(rnd *rand.Rand, e effort) [][]byte {
	seen := map[[32]byte]bool{}
	var out [][]byte
	add := func(b []byte) {
		if sum := sha256.Sum256(b); !seen[sum] {
			seen[sum] = true
			out = append(out, b)
		}
	}
	base := f.durable
	versions := [][]byte{base}
	add(base)
	for _, c := range f.pending {
		if c.Kind == disk.Wrote {
			for _, b := range torn(base, c, rnd, e) {
				add(b)
			}
		}
		base = written(bytes.Clone(base), c)
		versions = append(versions, base)
		add(base)
	}
	if len(versions) > 2 {
		for range e.shuffled {
			add(shuffled(versions, rnd))
		}
	}
	return out
}

// torn are the ways in which only some sectors of a write reach the disk.
func torn(base []byte, c disk.Change, rnd *rand.Rand, e effort) [][]byte {
	var parts []disk.Change
	for off := c.Off; off < c.Off+int64(len(c.Data)); {
		n := min(sector-off%sector, c.Off+int64(len(c.Data))-off)
		parts = append(parts, disk.Change{Kind: disk.Wrote, Off: off, Data: c.Data[off-c.Off:][:n]})
		off += n
	}
	n := len(parts)
	with := func(chosen func(i int) bool) []byte {
		b := bytes.Clone(base)
		for i, part := range parts {
			if chosen(i) {
				b = written(b, part)
			}
		}
		return b
	}
	var out [][]byte
	if n < 2 {
		return nil
	}
	if 1<<n-2 <= e.torn {
		for set := 1; set < 1<<n-1; set++ {
			out = append(out, with(func(i int) bool { return set>>i&1 == 1 }))
		}
		return out
	}
	for try := range e.torn {
		border := 1 + rnd.IntN(n-1)
		switch try % 3 {
		case 0:
			out = append(out, with(func(i int) bool { return i < border }))
		case 1:
			out = append(out, with(func(i int) bool { return i >= border }))
		default:
			out = append(out, with(func(int) bool { return rnd.IntN(2) == 0 }))
		}
	}
	return out
}

// shuffled takes each sector from one of the versions of a file.
func shuffled(versions [][]byte, rnd *rand.Rand) []byte {
	b := bytes.Clone(versions[rnd.IntN(len(versions))])
	for off := 0; off < len(b); off += sector {
		if v := versions[rnd.IntN(len(versions))]; len(v) > off {
			copy(b[off:min(off+sector, len(b))], v[off:])
		}
	}
	return b
}
