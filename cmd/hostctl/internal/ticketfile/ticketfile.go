// Package ticketfile reads tickets that people write in YAML: a batch, or one
// contract. Its keys are the flags of hostctl ticket create. docs/tickets.yaml is an
// example. Whatever is wrong is an *exit.UsageError that names file, line and key.
package ticketfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/strictyaml"
	"github.com/loophost/loophost/host/ticket"
)

// MaxBytes bounds a file, and each file that an objective is read from.
const MaxBytes = ticket.MaxRequestBytes

// Contract is what a file says of a ticket; nil means that it does not say.
type Contract struct {
	Title          *string   `yaml:"title,omitempty"`
	Objective      *string   `yaml:"objective,omitempty"` // @NAME: a file in the folder of this one; @@: a text that begins with @
	Acceptance     *[]string `yaml:"acceptance,omitempty"`
	Constraint     *[]string `yaml:"constraint,omitempty"`
	Tool           *[]string `yaml:"tool,omitempty"`
	MaxAttempts    *uint64   `yaml:"max-attempts,omitempty"`
	UserAcceptance *bool     `yaml:"user-acceptance,omitempty"`
}

// Entry is one ticket of a file.
type Entry struct {
	ID        *string   `yaml:"id,omitempty"`
	Parent    *string   `yaml:"parent,omitempty"`
	DependsOn *[]string `yaml:"depends-on,omitempty"`
	Contract  `yaml:",inline"`

	place string // file and line
}

const (
	contractKeys = "title, objective, acceptance, constraint, tool, max-attempts and user-acceptance"
	entryKeys    = "id, parent, depends-on, " + contractKeys
	fileKeys     = "tickets and defaults"
)

// Batch is the tickets of a file, with where each begins.
type Batch struct {
	Tickets []ticket.NewTicket
	places  map[string]string // by id
}

// Place is where a ticket stands, "tickets.yaml:12"; "" where it was not read from a file.
func (b *Batch) Place(id string) string { return b.places[id] }

// source is a file that is read.
type source struct {
	name string // for people
	dir  string
}

// open reads path, or stdin for "-".
func open(path string, stdin io.Reader) (source, []byte, error) {
	src := source{name: path, dir: filepath.Dir(path)}
	in := stdin
	if path == "-" {
		src = source{name: "stdin", dir: "."}
	} else {
		f, err := os.Open(path)
		if err != nil {
			return src, nil, exit.Usagef("ticket file: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := readAll(in)
	if err != nil {
		return src, nil, exit.Usagef("ticket file %s: %w", src.name, err)
	}
	return src, data, nil
}

var errTooLarge = fmt.Errorf("it has more than %d bytes", MaxBytes)

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > MaxBytes:
		return nil, errTooLarge
	case !utf8.Valid(data):
		return nil, errors.New("it is not valid UTF-8")
	}
	return data, nil
}

// bad is an error of usage at a place.
func bad(place, format string, args ...any) error {
	return exit.Usagef("ticket file "+strings.ReplaceAll(place, "%", "%%")+": "+format, args...)
}

// said puts the file's name into an error of strictyaml.
func (s source) said(err error) error {
	if e, ok := errors.AsType[*strictyaml.Error](err); ok {
		return &exit.UsageError{Text: "ticket file " + e.In(s.name), Err: err}
	}
	return err
}

func (s source) place(n ast.Node) string { return strictyaml.Place(s.name, strictyaml.Line(n)) }

// Read reads a batch of 1 to ticket.MaxBatch tickets from path, or from stdin for
// "-". What the rules of package ticket say of single contracts is checked already.
func Read(path string, stdin io.Reader) (*Batch, error) {
	src, data, err := open(path, stdin)
	if err != nil {
		return nil, err
	}
	body, err := strictyaml.Document(data)
	if err != nil {
		return nil, src.said(err)
	}
	var tickets *ast.SequenceNode
	var defaults Contract
	for _, p := range strictyaml.Pairs(body) {
		switch key := p.Key.GetToken().Value; key {
		case "tickets":
			if tickets, _ = p.Value.(*ast.SequenceNode); tickets == nil {
				return nil, bad(src.place(p.Value), "tickets must be a list")
			}
		case "defaults":
			if err := src.decode(p.Value, &defaults, contractKeys); err != nil {
				return nil, err
			}
			if defaults.Title != nil || defaults.Objective != nil {
				return nil, bad(src.place(p.Value), "title and objective have no defaults; each ticket has its own")
			}
		default:
			return nil, bad(src.place(p.Key), "unknown key %q; the keys are %s", key, fileKeys)
		}
	}
	if tickets == nil {
		return nil, bad(src.name, "it has no list of tickets; write one under the key tickets")
	}
	return src.batch(tickets.Values, defaults)
}

func (s source) batch(nodes []ast.Node, defaults Contract) (*Batch, error) {
	if n := len(nodes); n == 0 || n > ticket.MaxBatch {
		return nil, bad(s.name, "it has %d tickets; one command makes 1 to %d", n, ticket.MaxBatch)
	}
	b := &Batch{places: make(map[string]string, len(nodes))}
	for _, n := range nodes {
		e := Entry{place: s.place(n)}
		if err := s.decode(n, &e, entryKeys); err != nil {
			return nil, err
		}
		e.fill(defaults)
		t, err := s.newTicket(e)
		if err != nil {
			return nil, err
		}
		if at, ok := b.places[t.ID]; ok {
			return nil, bad(e.place, "the ticket %q is there already, at %s", t.ID, at)
		}
		b.places[t.ID] = e.place
		b.Tickets = append(b.Tickets, t)
	}
	return b, nil
}

// decode reads a mapping.
func (s source) decode(n ast.Node, into any, keys string) error {
	if n != nil && n.Type() != ast.MappingType && n.Type() != ast.MappingValueType && n.Type() != ast.NullType {
		return bad(s.place(n), "here must be a mapping with the keys %s", keys)
	}
	err := strictyaml.Counts(n, "max-attempts")
	if err == nil {
		err = strictyaml.Decode(n, into, keys)
	}
	return s.said(err)
}

// fill takes what e does not say from the file's defaults.
func (e *Entry) fill(d Contract) {
	fill(&e.Acceptance, d.Acceptance)
	fill(&e.Constraint, d.Constraint)
	fill(&e.Tool, d.Tool)
	fill(&e.MaxAttempts, d.MaxAttempts)
	fill(&e.UserAcceptance, d.UserAcceptance)
}

func fill[T any](to **T, from *T) {
	if *to == nil {
		*to = from
	}
}

func (s source) newTicket(e Entry) (ticket.NewTicket, error) {
	id := or(e.ID, "")
	if id == "" {
		return ticket.NewTicket{}, bad(e.place, "the ticket has no id")
	}
	c, err := s.contract(e)
	return ticket.NewTicket{ID: id, Parent: or(e.Parent, ""), DependsOn: or(e.DependsOn, nil), Contract: c}, err
}

// contract is e's, validated.
func (s source) contract(e Entry) (ticket.Contract, error) {
	objective, err := s.objective(or(e.Objective, ""))
	if err != nil {
		return ticket.Contract{}, bad(e.place, "objective: %w", err)
	}
	c := ticket.Contract{
		Title: or(e.Title, ""), Objective: objective, Constraints: or(e.Constraint, nil), Acceptance: or(e.Acceptance, nil),
		UserAcceptanceRequired: or(e.UserAcceptance, false), AllowedTools: or(e.Tool, nil), Retry: ticket.Retry{MaxAttempts: or(e.MaxAttempts, 0)},
	}
	if refused, ok := errors.AsType[*ticket.Error](c.Validate()); ok {
		return c, bad(e.place, "%s", refused.Detail)
	}
	return c, nil
}

// Named reads TEXT or @FILE: the file's name, or ok is false and it is the text. A text
// that begins with @ is written with two.
func Named(arg string) (value string, ok bool) {
	rest, ok := strings.CutPrefix(arg, "@")
	if !ok || strings.HasPrefix(rest, "@") {
		return strings.TrimPrefix(arg, "@"), false
	}
	return rest, true
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// objective is a text, or what a file has. A ticket file may be somebody else's, so
// it can only name files in its own folder.
func (s source) objective(text string) (string, error) {
	name, ok := Named(text)
	if !ok {
		return name, nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(filepath.Clean(name))
	if err != nil {
		return "", fmt.Errorf("%w; a ticket file can only name files in its own folder", err)
	}
	defer f.Close()
	data, err := readAll(f)
	return strings.TrimSuffix(string(data), "\n"), err
}

// Revision is what a file changes of a ticket; nil: nothing.
type Revision struct {
	Contract  *ticket.Contract
	DependsOn *[]string
}

// ReadRevision reads one ticket as it is to be: a whole contract, dependencies, or
// both, under the keys of a batch's ticket. An id in it must be the ticket's.
func ReadRevision(path string, stdin io.Reader, id string) (Revision, error) {
	src, data, err := open(path, stdin)
	if err != nil {
		return Revision{}, err
	}
	body, err := strictyaml.Document(data)
	if err != nil {
		return Revision{}, src.said(err)
	}
	e := Entry{place: src.place(body)}
	if err := src.decode(body, &e, entryKeys); err != nil {
		return Revision{}, err
	}
	switch {
	case e.ID != nil && *e.ID != id:
		return Revision{}, bad(e.place, "it is about the ticket %q, not %q", *e.ID, id)
	case e.Parent != nil:
		return Revision{}, bad(e.place, "the parent of a ticket can't be changed")
	case e.Contract == Contract{} && e.DependsOn == nil:
		return Revision{}, bad(e.place, "it changes nothing; give a contract, depends-on, or both")
	}
	r := Revision{DependsOn: e.DependsOn}
	if e.Contract != (Contract{}) {
		c, err := src.contract(e)
		if err != nil {
			return Revision{}, err
		}
		r.Contract = &c
	}
	return r, nil
}
