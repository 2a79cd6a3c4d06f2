package cli

import (
	"fmt"
	"strings"
)

// Format is how data is printed.
type Format string

// The formats.
const (
	Text  Format = "text"
	JSON  Format = "json"
	JSONL Format = "jsonl"
)

// Object reports whether a command in this format ends with one JSON object,
// also when it fails.
func (f Format) Object() bool { return f == JSON || f == JSONL }

// FormatFlag is --output: one of the formats that a verb allows.
type FormatFlag struct {
	Value   Format
	Allowed []Format
}

// NewFormat allows the given formats; the first is the default.
func NewFormat(allowed ...Format) *FormatFlag {
	return &FormatFlag{Value: allowed[0], Allowed: allowed}
}

// String is the value.
func (f *FormatFlag) String() string { return string(f.Value) }

// Type is shown in the help.
func (f *FormatFlag) Type() string { return strings.Join(f.words(), "|") }

// Set reads the value; stream-json is what others call jsonl.
func (f *FormatFlag) Set(s string) error {
	if s == "stream-json" {
		s = string(JSONL)
	}
	for _, a := range f.Allowed {
		if string(a) == s {
			f.Value = a
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(f.words(), ", "))
}

func (f *FormatFlag) words() []string {
	out := make([]string, len(f.Allowed))
	for i, a := range f.Allowed {
		out[i] = string(a)
	}
	return out
}
