package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// maxListed bounds the entries of one list.
const maxListed = 1_000

// listFiles is {"path", "recursive"}: the entries of a folder, one a line; a
// folder ends with a slash, a link is named as one.
func (w *workspace) listFiles(args *wire.Reader) (string, error) {
	p, deep := ".", false
	f := args.Fields([]string{"path", "recursive"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			p = args.Text()
		case 1:
			deep = args.Bool()
		}
	}
	if err := args.End(); err != nil {
		return "", badArguments(err)
	}
	rel, err := clean(p)
	if err != nil {
		return "", err
	}
	if info, err := w.root.Stat(rel); err != nil {
		return "", explain(p, err)
	} else if !info.IsDir() {
		return "", errors.New(p + " is a file; read_file shows it")
	}
	var out strings.Builder
	count := 0
	var cut bool
	notes, err := w.walk(rel, deep, func(name string, e fs.DirEntry) error {
		if count == maxListed || out.Len()+len(name) > maxOutput {
			cut = true
			return errEnough
		}
		count++
		out.WriteString(name)
		switch {
		case e.IsDir():
			out.WriteByte('/')
		case e.Type()&fs.ModeSymlink != 0:
			out.WriteString(" (link)")
		}
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		return "", explain(p, err)
	}
	if cut {
		notes = append(notes, "truncated: "+plural(count, "entry", "entries")+" of more are shown; list a folder further down")
	}
	if count == 0 && len(notes) == 0 {
		return "[" + p + " is an empty folder]", nil
	}
	return finish(&out, notes), nil
}

// finish adds the notes to an answer made of lines.
func finish(out *strings.Builder, notes []string) string {
	if len(notes) > 0 {
		out.WriteString("[" + strings.Join(notes, "; ") + "]")
	}
	return strings.TrimSuffix(out.String(), "\n")
}
