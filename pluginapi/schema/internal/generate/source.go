package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// text is what the source says and reflection doesn't: comments and constants.
type text struct {
	words    map[string][]any  // the string constants of a type, in order
	comments map[string]string // of "Type" and "Type.Field"
	aliases  []any             // other names of hook points
}

// read collects from a package's source.
func read(folder string) (text, error) {
	out := text{words: map[string][]any{}, comments: map[string]string{}}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return out, err
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					if err := out.value(g.Tok, s); err != nil {
						return out, fmt.Errorf("%s: %w", e.Name(), err)
					}
				case *ast.TypeSpec:
					out.typ(g, s)
				}
			}
		}
	}
	return out, nil
}

// value takes in a constant, or the table of aliases.
func (x *text) value(tok token.Token, v *ast.ValueSpec) error {
	if tok == token.CONST {
		return x.constant(v)
	}
	if len(v.Names) != 1 || v.Names[0].Name != "aliases" || len(v.Values) != 1 {
		return nil
	}
	table, ok := v.Values[0].(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, element := range table.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if lit, ok := pair.Key.(*ast.BasicLit); ok {
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				return err
			}
			x.aliases = append(x.aliases, name)
		}
	}
	return nil
}

func (x *text) constant(v *ast.ValueSpec) error {
	t, ok := v.Type.(*ast.Ident)
	if !ok {
		return nil
	}
	for _, value := range v.Values {
		lit, ok := value.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		word, err := strconv.Unquote(lit.Value)
		if err != nil {
			return err
		}
		if word != "" { // the zero value is left out of the document
			x.words[t.Name] = append(x.words[t.Name], word)
		}
	}
	return nil
}

func (x *text) typ(g *ast.GenDecl, t *ast.TypeSpec) {
	x.comments[t.Name.Name] = line(g.Doc, t.Doc)
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			x.comments[t.Name.Name+"."+name.Name] = line(f.Doc, f.Comment)
		}
	}
}

// line is the first of two comments that is there, on one line.
func line(a, b *ast.CommentGroup) string {
	if a == nil {
		a = b
	}
	return strings.Join(strings.Fields(a.Text()), " ")
}
