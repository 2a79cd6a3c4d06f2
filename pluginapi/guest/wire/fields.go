package wire

// Fields walks an object whose names are known: at most 32. An unknown name and
// one that comes twice are errors.
type Fields struct {
	r     *Reader
	names []string
	seen  uint32
	hint  int
	open  bool
}

// Fields takes the '{' of an object.
func (r *Reader) Fields(names []string) Fields {
	return Fields{r: r, names: names, open: r.Object()}
}

// Next gives the index of the next member's name, with the reader before its
// value; false at the object's end and after an error.
func (f *Fields) Next() (int, bool) {
	if !f.open {
		return 0, false
	}
	at := f.r.pos
	key, ok := f.r.Key()
	if !ok {
		f.open = false
		return 0, false
	}
	i := f.index(key)
	switch {
	case i < 0:
		f.r.failAt(at, "unknown field "+brief(key))
	case f.seen>>uint(i)&1 == 1:
		f.r.failAt(at, "duplicate field "+brief(key))
	default:
		f.seen |= 1 << uint(i)
		f.hint = i + 1
		return i, true
	}
	f.open = false
	return 0, false
}

// Has reports whether the name with index i was met so far.
func (f *Fields) Has(i int) bool { return f.seen>>uint(i)&1 == 1 }

// index finds key, trying first the name that comes next in canonical order.
func (f *Fields) index(key string) int {
	if f.hint < len(f.names) && f.names[f.hint] == key {
		return f.hint
	}
	for i, n := range f.names {
		if n == key {
			return i
		}
	}
	return -1
}

// brief shortens what an error says of foreign text.
func brief(s string) string {
	const limit = 40
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return string(AppendText(nil, s))
}
