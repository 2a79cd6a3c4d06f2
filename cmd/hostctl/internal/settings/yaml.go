package settings

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxConfigDepth bounds how deep a project's file nests. The YAML library works
// recursively, and a page of brackets would take its stack.
const maxConfigDepth = 32

// flaw is what makes a project's file unusable, and where.
type flaw struct {
	at   *token.Token
	text string
}

// document reads one YAML document as far as its shape is harmless: nothing
// nests deeply, and nothing refers to another place, since a few lines of aliases
// can stand for more than a machine's memory. It is nil where there is no content.
// The error is the library's, for a syntax that is wrong.
func document(data []byte) (ast.Node, *flaw, error) {
	tokens := lexer.Tokenize(string(data))
	if f := shapeOf(tokens); f != nil {
		return nil, f, nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, nil, err
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			return nil, &flaw{doc.Body.GetToken(), "a second document starts here; a config file is one document"}, nil
		default:
			body = doc.Body
		}
	}
	return body, countsOf(body), nil
}

// shapeOf looks for what can't be handed to the parser.
func shapeOf(tokens token.Tokens) *flaw {
	var blocks []int // columns of the block collections that are open
	flow := 0
	for i, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return &flaw{t, "anchors, aliases and merge keys are not read; write the value out"}
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
		if flow+len(blocks) > maxConfigDepth {
			return &flaw{t, fmt.Sprintf("values are nested more than %d deep", maxConfigDepth)}
		}
	}
	return nil
}

// countsOf looks for counts that are no whole numbers: decoding would cut off a fraction
// and read a text as best it can.
func countsOf(body ast.Node) *flaw {
	var pairs []*ast.MappingValueNode
	switch n := body.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	}
	for _, p := range pairs {
		switch name := p.Key.GetToken().Value; name {
		case "iterations", "rounds", "max-tokens-total":
			if kind := p.Value.Type(); kind != ast.IntegerType && kind != ast.NullType {
				return &flaw{p.Value.GetToken(), fmt.Sprintf("%s is %s; it must be a whole number", name, p.Value.GetToken().Value)}
			}
		}
	}
	return nil
}
