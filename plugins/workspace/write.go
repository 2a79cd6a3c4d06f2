package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// maxTemps is how many leftovers of interrupted writes a folder may hold before a write gives up.
const maxTemps = 100

// writeFile is {"path", "content"}: creates or replaces a file, with the folders above it.
func (w *workspace) writeFile(args *wire.Reader) (string, error) {
	var p, content string
	f := args.Fields([]string{"path", "content"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			p = args.Text()
		case 1:
			content = args.Text()
		}
	}
	if err := args.End(); err != nil {
		return "", badArguments(err)
	}
	if !f.Has(1) {
		return "", errors.New("the argument content is missing")
	}
	rel, err := cleanFile(p)
	if err != nil {
		return "", err
	}
	verb := "created"
	if info, err := w.root.Stat(rel); err == nil {
		if info.IsDir() {
			return "", errors.New(p + " is a folder; name a file")
		}
		verb = "replaced"
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", explain(p, err)
	}
	if err := w.root.MkdirAll(path.Dir(rel), 0o777); err != nil {
		return "", explain(path.Dir(rel), err)
	}
	if err := w.replace(rel, content); err != nil {
		return "", explain(p, err)
	}
	return verb + " " + p + " (" + plural(len(content), "byte", "bytes") + ")", nil
}

// replace puts content at rel in one step: whoever reads the file sees the old
// or the new text, also when the write is interrupted.
func (w *workspace) replace(rel, content string) error {
	if len(content) > maxFile {
		return errors.New("the text has " + plural(len(content), "byte", "bytes") + "; the limit is " + strconv.Itoa(maxFile))
	}
	temp, f, err := w.temp(path.Dir(rel))
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = w.root.Rename(temp, rel)
	}
	if err != nil {
		return errors.Join(err, w.root.Remove(temp))
	}
	return nil
}

// temp creates a file of its own in the folder where the text goes, so that the
// rename stays within one file system.
func (w *workspace) temp(folder string) (string, *os.File, error) {
	for n := 0; ; n++ {
		name := path.Join(folder, ".loophost-tmp-"+strconv.Itoa(n))
		f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil || !errors.Is(err, fs.ErrExist) || n == maxTemps {
			return name, f, err
		}
	}
}
