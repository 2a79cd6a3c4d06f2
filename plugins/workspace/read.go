package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

const (
	defaultLines = 2_000
	maxLines     = 10_000
)

// readFile is {"path", "offset", "limit"}: limit lines from line offset, as they are in the file.
func (w *workspace) readFile(args *wire.Reader) (string, error) {
	var p string
	offset, limit := 1, defaultLines
	f := args.Fields([]string{"path", "offset", "limit"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			p = args.Text()
		case 1:
			offset = int(min(args.Uint32(), 1<<30))
		case 2:
			limit = int(min(args.Uint32(), maxLines))
		}
	}
	if err := args.End(); err != nil {
		return "", badArguments(err)
	}
	if offset < 1 || limit < 1 {
		return "", errors.New("offset and limit count from 1")
	}
	rel, err := cleanFile(p)
	if err != nil {
		return "", err
	}
	b, err := w.text(rel)
	if err != nil {
		return "", explainText(p, err)
	}
	return cut(p, string(b), offset, limit)
}

// cut is the lines that were asked for, with a note where they aren't all.
func cut(p, text string, offset, limit int) (string, error) {
	if text == "" {
		return "[" + p + " is empty]", nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if offset > len(lines) {
		return "", errors.New(p + " has " + plural(len(lines), "line", "lines") + "; offset " + strconv.Itoa(offset) + " is past its end")
	}
	var out strings.Builder
	last := offset - 1 // the number of the last line taken
	for last < len(lines) && last-offset+1 < limit && out.Len()+len(lines[last]) <= maxOutput {
		out.WriteString(lines[last])
		last++
	}
	shown := out.String()
	if last < offset { // the first line alone is too long
		return clip(lines[offset-1], maxOutput) + "\n[truncated: line " + strconv.Itoa(offset) + " of " + strconv.Itoa(len(lines)) +
			" has " + strconv.Itoa(len(lines[offset-1])) + " bytes; only its start is shown; search_files finds what is in it]", nil
	}
	if offset == 1 && last == len(lines) {
		return shown, nil
	}
	if !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	note := "[lines " + strconv.Itoa(offset) + "–" + strconv.Itoa(last) + " of " + strconv.Itoa(len(lines)) + "]"
	if last < len(lines) {
		note = "[truncated: lines " + strconv.Itoa(offset) + "–" + strconv.Itoa(last) + " of " + strconv.Itoa(len(lines)) +
			" are shown; go on with offset " + strconv.Itoa(last+1) + "]"
	}
	return shown + note, nil
}

func badArguments(err error) error {
	return errors.New("the arguments don't fit the tool's schema: " + err.Error())
}
