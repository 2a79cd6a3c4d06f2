package strictyaml

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Error says what is wrong with a document, and where.
type Error struct {
	Line int // 0: not known
	Text string
	Err  error // the library's; may be nil
}

// Error is the text with its line.
func (e *Error) Error() string { return e.In("") }

// In is the text behind the path of its file and its line, "tickets.yaml:7: …".
func (e *Error) In(path string) string {
	if where := Place(path, e.Line); where != "" {
		return where + ": " + e.Text
	}
	return e.Text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Place is a file's path with a line, where that is known.
func Place(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}

// Line is the line of a node, 0 where it is not known.
func Line(n ast.Node) int {
	if n == nil {
		return 0
	}
	return lineOf(n.GetToken())
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

func at(t *token.Token, text string) *Error { return &Error{Line: lineOf(t), Text: text} }

// Decode reads a node into a struct strictly. keys says in words which keys there
// are, for the message about one that there isn't. No node leaves into as it is.
func Decode(n ast.Node, into any, keys string) error {
	if n == nil {
		return nil
	}
	err := yaml.NodeToValue(n, into, yaml.Strict())
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return errorOf(err, keys)
}

func errorOf(err error, keys string) *Error {
	var lib yaml.Error
	if !errors.As(err, &lib) {
		return &Error{Text: err.Error(), Err: err}
	}
	e := &Error{Line: lineOf(lib.GetToken()), Text: lib.GetMessage(), Err: err}
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && unknown.Token != nil {
		e.Text = fmt.Sprintf("unknown key %q; the keys are %s", unknown.Token.Value, keys)
	}
	return e
}
