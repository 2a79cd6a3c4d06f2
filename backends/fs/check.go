package fs

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// Check reads the whole journal and verifies every checksum and link, the id,
// and the index, which is a hint, but a wrong one shows that something went wrong.
func (s *Store) Check(ctx context.Context, key store.Key) (store.CheckReport, error) {
	const op = "check"
	leave, err := s.start(ctx, op, key)
	if err != nil {
		return store.CheckReport{}, err
	}
	defer leave()
	if err := key.Validate(); err != nil {
		return store.CheckReport{}, err
	}
	r, err := s.use(ctx, key)
	if err != nil {
		return store.CheckReport{}, err
	}
	defer s.unuse(r)
	if err := r.look(ctx); err != nil {
		return store.CheckReport{}, fail(op, key, err)
	}
	if r.st.deleted {
		return store.CheckReport{}, fail(op, key, r.deleted())
	}
	rep, err := r.check()
	return rep, fail(op, key, err)
}

func (r *record) check() (store.CheckReport, error) {
	rep := store.CheckReport{Key: r.key}
	size, err := r.journal.Size()
	if err != nil {
		return rep, err
	}
	// What others append while this reads is left to the next check.
	whole := size
	if r.broken == nil {
		whole = r.st.end
	}
	st, marks := state{}, map[int64]format.IndexLine{}
	err = st.replay(r.key, r.journal, whole, func(st *state) {
		rep.Commits++
		marks[st.end] = st.indexLine(r.key)
	})
	if st.birth != 0 {
		rep.Commits++ // the first one
	}
	rep.Birth, rep.Revision, rep.Entries, rep.Bytes = st.birth, st.rev, st.log, st.end
	var d *damage
	switch {
	case errors.As(err, &d):
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s: %v", r.journal.Name(), d))
	case err != nil:
		return rep, err
	case r.broken != nil:
		rep.Findings = append(rep.Findings, r.broken.Error())
	}
	if b, err := r.dir.ReadFile(idName); err != nil {
		rep.Findings = append(rep.Findings, err.Error())
	} else if _, err := format.ParseKey(b, format.Folder(r.key)); err != nil {
		rep.Findings = append(rep.Findings, err.Error())
	}
	rep.Findings = append(rep.Findings, r.checkIndex(marks)...)
	names, err := r.names()
	sort.Strings(names)
	for _, name := range names {
		if strings.HasPrefix(name, tornPrefix) {
			rep.SetAside = append(rep.SetAside, r.dir.Name()+"/"+name)
		}
	}
	if t := r.tail; r.broken == nil && t.to > t.from {
		rep.SetAside = append(rep.SetAside, fmt.Sprintf("%s: bytes %d to %d, until the next write", r.journal.Name(), t.from, t.to))
	}
	return rep, err
}

// checkIndex compares the index with the states that the journal gave.
func (r *record) checkIndex(marks map[int64]format.IndexLine) []string {
	x := r.openIndex()
	if x == nil {
		return nil
	}
	defer x.close()
	var out []string
	for i := range x.n {
		l, whole := x.line(i)
		if have, ok := marks[l.At]; whole && l.At < r.st.end && (!ok || have != l) || !whole {
			out = append(out, fmt.Sprintf("%s: entry %d is not what the journal says; it is not used", x.f.Name(), i))
		}
	}
	return out
}
