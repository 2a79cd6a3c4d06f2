// Package strictyaml reads YAML that people wrote, as strictly as a library allows:
// one document, harmless in shape, without unknown or repeated keys. Whatever is
// wrong is an *Error that knows its line.
package strictyaml

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxDepth bounds how deep a document nests. The YAML library works recursively,
// and a page of brackets would take its stack.
const MaxDepth = 32

// Document reads one YAML document as far as its shape is harmless: nothing
// nests deeply, and nothing refers to another place, since a few lines of aliases
// can stand for more than a machine's memory. It is nil where there is no content.
func Document(data []byte) (ast.Node, error) {
	tokens := lexer.Tokenize(string(data))
	if err := shapeOf(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, errorOf(err, "")
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			return nil, at(doc.Body.GetToken(), "a second document starts here; a file is one document")
		default:
			body = doc.Body
		}
	}
	return body, nil
}

// shapeOf looks for what can't be handed to the parser.
func shapeOf(tokens token.Tokens) error {
	var blocks []int // columns of the block collections that are open
	flow := 0
	for i, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return at(t, "anchors, aliases and merge keys are not read; write the value out")
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if flow > 0 {
				break
			}
			column := t.Position.Column
			if t.Type == token.MappingValueType && i > 0 {
				column = tokens[i-1].Position.Column // of the key
			}
			for len(blocks) > 0 && blocks[len(blocks)-1] >= column {
				blocks = blocks[:len(blocks)-1]
			}
			blocks = append(blocks, column)
		}
		if flow+len(blocks) > MaxDepth {
			return at(t, fmt.Sprintf("values are nested more than %d deep", MaxDepth))
		}
	}
	return nil
}

// Pairs are the keys and values of a mapping; none of anything else.
func Pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// Counts refuses values of the named keys of a mapping that are no whole numbers:
// decoding would cut off a fraction and read a text as best it can.
func Counts(body ast.Node, names ...string) error {
	for _, p := range Pairs(body) {
		name := p.Key.GetToken().Value
		if !slices.Contains(names, name) {
			continue
		}
		if kind := p.Value.Type(); kind != ast.IntegerType && kind != ast.NullType {
			return at(p.Value.GetToken(), fmt.Sprintf("%s is %s; it must be a whole number", name, p.Value.GetToken().Value))
		}
	}
	return nil
}
