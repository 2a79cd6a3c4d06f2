package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// editFile is {"path", "old_text", "new_text"}: replaces the one place where
// old_text stands.
func (w *workspace) editFile(args *wire.Reader) (string, error) {
	var p, before, after string
	f := args.Fields([]string{"path", "old_text", "new_text"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			p = args.Text()
		case 1:
			before = args.Text()
		case 2:
			after = args.Text()
		}
	}
	if err := args.End(); err != nil {
		return "", badArguments(err)
	}
	if !f.Has(2) {
		return "", errors.New("the argument new_text is missing")
	}
	rel, err := cleanFile(p)
	if err != nil {
		return "", err
	}
	b, err := w.text(rel)
	if err != nil {
		return "", explainText(p, err)
	}
	text, line, err := substitute(string(b), before, after)
	if err != nil {
		return "", errors.New(p + " is unchanged: " + err.Error())
	}
	if err := w.replace(rel, text); err != nil {
		return "", explain(p, err)
	}
	return "edited " + p + " at line " + strconv.Itoa(line), nil
}

// substitute replaces the only occurrence of before and says in which line it started.
func substitute(text, before, after string) (string, int, error) {
	if before == "" {
		return "", 0, errors.New("old_text is empty; write_file creates and replaces whole files")
	}
	if before == after {
		return "", 0, errors.New("old_text and new_text are the same")
	}
	at := strings.Index(text, before)
	if at < 0 {
		hint := "it must be exactly as in the file, with its white space; read_file shows it"
		if strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), before) {
			hint = `the file's lines end with \r\n, those of old_text with \n`
		}
		return "", 0, errors.New("old_text was not found; " + hint)
	}
	if last := strings.LastIndex(text, before); last != at {
		return "", 0, errors.New("old_text stands there more than once, first in line " + strconv.Itoa(lineAt(text, at)) +
			" and last in line " + strconv.Itoa(lineAt(text, last)) + "; take more of the lines around it")
	}
	return text[:at] + after + text[at+len(before):], lineAt(text, at), nil
}

// lineAt is the number of the line that holds byte i, from 1.
func lineAt(text string, i int) int { return strings.Count(text[:i], "\n") + 1 }
