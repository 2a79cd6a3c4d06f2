package wasm

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/SANDBOX.md anew")

// TestSandboxDocument keeps the tables of docs/SANDBOX.md those of the attacks that
// the tests make. Write them anew with
//
//	go test ./host/plugin/wasm -run SandboxDocument -update
func TestSandboxDocument(t *testing.T) {
	const path = "../../../docs/SANDBOX.md"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := doc
	for mark, table := range map[string]string{"attacks": attackTable(), "bombs": bombTable()} {
		open, end := fmt.Appendf(nil, "<!-- %s -->\n", mark), fmt.Appendf(nil, "<!-- end of %s -->\n", mark)
		before, rest, ok := bytes.Cut(got, open)
		_, after, ok2 := bytes.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no %sand %s", path, open, end)
		}
		got = slices.Concat(before, open, []byte(table), end, after)
	}
	if bytes.Equal(got, doc) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the tests do; run this test with -update", path)
	}
	if err := os.WriteFile(path, got, 0o644); err != nil {
		t.Fatal(err)
	}
}

func attackTable() string {
	var b bytes.Buffer
	fmt.Fprint(&b, "| attack | what ends it | what the operator sees | ended by the context instead |\n|---|---|---|---|\n")
	for _, a := range attacks() {
		closing := a.closing
		if closing == "" {
			closing = "the same"
		}
		sees := a.sees
		if a.want != "" {
			sees = "`" + sees + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", a.name, a.ends, sees, closing)
	}
	return b.String()
}

func bombTable() string {
	var b bytes.Buffer
	all := bombs()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "- %s (%d bytes)\n", name, len(all[name].wasm))
	}
	return b.String()
}
