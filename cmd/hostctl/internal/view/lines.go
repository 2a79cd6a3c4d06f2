package view

import (
	"bytes"
	"io"
	"strings"
)

// lines writes text so that every line starts with a prefix, and knows whether
// it stands at the start of one.
type lines struct {
	w      io.Writer
	prefix string
	mid    bool  // something stands on the current line
	err    error // the first write that failed
}

// text writes s, which may hold line ends and may stop in the middle of a line.
// What follows a line end is indented.
func (l *lines) text(s, indent string) {
	var b bytes.Buffer
	for len(s) > 0 {
		line, rest, ended := strings.Cut(s, "\n")
		if !l.mid {
			b.WriteString(l.prefix)
			if line != "" {
				b.WriteString(indent)
			}
		}
		b.WriteString(line)
		l.mid = true
		if ended {
			b.WriteByte('\n')
			l.mid = false
		}
		s = rest
	}
	// A person who closed the terminal must not end the run: the error is kept for who asks.
	if _, err := l.w.Write(b.Bytes()); err != nil && l.err == nil {
		l.err = err
	}
}

// line writes one whole line, on a line of its own.
func (l *lines) line(s string) {
	l.fresh()
	l.text(s+"\n", "")
}

// fresh ends the current line if something stands on it.
func (l *lines) fresh() {
	if l.mid {
		l.text("\n", "")
	}
}
