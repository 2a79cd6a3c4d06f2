package main

import (
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

const (
	maxMatches  = 200
	maxSearched = 64 << 20 // bytes of text that one search reads
	maxLine     = 240      // bytes of a line that are shown
)

// searchFiles is {"pattern", "path", "regexp"}: the lines that hold a pattern, as
// PATH:LINE:TEXT, in all text files below a folder or in one file.
func (w *workspace) searchFiles(args *wire.Reader) (string, error) {
	var pattern string
	p, isRegexp := ".", false
	f := args.Fields([]string{"pattern", "path", "regexp"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			pattern = args.Text()
		case 1:
			p = args.Text()
		case 2:
			isRegexp = args.Bool()
		}
	}
	if err := args.End(); err != nil {
		return "", badArguments(err)
	}
	if pattern == "" {
		return "", errors.New("the argument pattern is missing or empty")
	}
	find, err := finder(pattern, isRegexp)
	if err != nil {
		return "", err
	}
	rel, err := clean(p)
	if err != nil {
		return "", err
	}
	info, err := w.root.Stat(rel)
	if err != nil {
		return "", explain(p, err)
	}
	s := search{w: w, find: find}
	if !info.IsDir() {
		b, err := w.text(rel)
		if err != nil {
			return "", explainText(p, err)
		}
		s.lines(rel, string(b))
		return s.answer(p, nil), nil
	}
	notes, err := w.walk(rel, true, s.visit)
	if err != nil {
		return "", explain(p, err)
	}
	return s.answer(p, notes), nil
}

// finder gives the place of the first match in a line, or -1.
func finder(pattern string, isRegexp bool) (func(string) int, error) {
	if !isRegexp {
		if strings.Contains(pattern, "\n") {
			return nil, errors.New("the pattern holds a line's end; lines are searched one by one")
		}
		return func(line string) int { return strings.Index(line, pattern) }, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errors.New("the pattern is no regular expression of RE2's syntax: " + err.Error() + `; set "regexp": false to look for the text as it is`)
	}
	return func(line string) int {
		if m := re.FindStringIndex(line); m != nil {
			return m[0]
		}
		return -1
	}, nil
}

// search is one search as it goes.
type search struct {
	w      *workspace
	find   func(string) int
	out    strings.Builder
	found  int
	cut    bool // there are more matches
	read   int  // bytes so far
	full   bool // read reached its bound
	binary int
	large  int
	closed int // files that could not be read
}

func (s *search) visit(rel string, e fs.DirEntry) error {
	if !e.Type().IsRegular() {
		return nil
	}
	if s.read >= maxSearched {
		s.full = true
		return errEnough
	}
	b, err := s.w.text(rel)
	s.read += len(b)
	switch {
	case errors.Is(err, errBinary):
		s.binary++
	case errors.Is(err, errLarge):
		s.large++
		s.read += maxFile
	case err != nil:
		s.closed++
	case !s.lines(rel, string(b)):
		return errEnough
	}
	return nil
}

// lines searches one file; false: there is no room for more.
func (s *search) lines(rel, text string) bool {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		at := s.find(line)
		if at < 0 {
			continue
		}
		if s.found == maxMatches || s.out.Len()+len(rel)+maxLine > maxOutput {
			s.cut = true
			return false
		}
		s.found++
		s.out.WriteString(rel + ":" + strconv.Itoa(number) + ":" + window(line, at) + "\n")
	}
	return true
}

// window is the part of a long line around byte at.
func window(line string, at int) string {
	if len(line) <= maxLine {
		return line
	}
	lead := ""
	if at > maxLine/3 {
		start := at - maxLine/3
		line = line[len(clip(line, start)):]
		lead = "…"
	}
	if len(line) > maxLine {
		return lead + clip(line, maxLine) + "…"
	}
	return lead + line
}

// answer is what was found, with notes about what was left out.
func (s *search) answer(p string, notes []string) string {
	switch {
	case s.cut:
		notes = append(notes, "truncated: "+plural(s.found, "match", "matches")+" of more are shown; search a folder further down or for a rarer pattern")
	case s.full:
		notes = append(notes, "truncated: only "+strconv.Itoa(maxSearched>>20)+" MiB were searched; search a folder further down")
	}
	for _, skip := range []struct {
		n    int
		what string
	}{{s.binary, "binary"}, {s.large, "over " + strconv.Itoa(maxFile>>20) + " MiB"}, {s.closed, "unreadable"}} {
		if skip.n > 0 {
			notes = append(notes, "skipped: "+plural(skip.n, "file, ", "files, ")+skip.what)
		}
	}
	if s.found == 0 {
		notes = append([]string{"no match in " + p}, notes...)
	}
	return finish(&s.out, notes)
}
