package loop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The machine is pure: what it can't import it can't do.
func TestTheMachineStaysPure(t *testing.T) {
	forbidden := map[string]bool{"context": true, "os": true, "net": true, "log": true, "log/slog": true, "time": true, "sync": true, "sync/atomic": true, "io": true, "math/rand": true, "math/rand/v2": true, "crypto/rand": true}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		files++
		for _, fault := range impurities(t, e.Name(), nil, forbidden) {
			t.Error(fault)
		}
	}
	if files == 0 {
		t.Error("no source was read")
	}
}

func TestImpuritiesAreSeen(t *testing.T) {
	src := "package p\n\nimport (\n\t\"net/http\"\n\t\"time\"\n)\n\nfunc f(c chan int) {\n\tgo f(c)\n\tselect {}\n}\n"
	got := impurities(t, "bad.go", src, map[string]bool{"net": true, "time": true})
	if len(got) != 5 {
		t.Errorf("got %q; want the two imports, the channel, the goroutine and the select", got)
	}
}

// impurities lists what a source file has that the pure machine may not have.
func impurities(t *testing.T, name string, src any, forbidden map[string]bool) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(path, "/"); forbidden[path] || forbidden[first] {
			out = append(out, fset.Position(imp.Pos()).String()+": import "+path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt:
			out = append(out, fset.Position(n.Pos()).String()+": a goroutine")
		case *ast.SelectStmt, *ast.ChanType:
			out = append(out, fset.Position(n.Pos()).String()+": a channel")
		}
		return true
	})
	return out
}
