package conformance

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/broken-stores.md anew")

const (
	matrixPath = "../docs/broken-stores.md"
	maxNamed   = 5 // cases that a row of the page names
)

// documented keeps one profile's table of docs/broken-stores.md: which broken store is
// caught by which cases. A row must name every broken store, and at least one case that
// catches it now; not the same cases, since some defects show only in some schedules.
func documented(t *testing.T, profile Profile, caught map[string][]string) {
	t.Helper()
	page, err := os.ReadFile(matrixPath)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s -->\n", profile), fmt.Sprintf("<!-- end of %s -->\n", profile)
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: want the lines %q and %q around the table", matrixPath, begin, end)
	}
	if *update {
		if err := os.WriteFile(matrixPath, []byte(before+begin+rows(caught)+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	named := map[string]bool{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || cells[0] == "| broken store" {
			continue
		}
		name := strings.TrimPrefix(cells[0], "| ")
		named[name] = true
		if !slices.ContainsFunc(caseName.FindAllString(cells[1], -1), func(id string) bool {
			return slices.Contains(caught[name], strings.Trim(id, "`"))
		}) {
			t.Errorf("%s says that %q is caught by %s; got %v. Write it with -update", matrixPath, name, cells[1], caught[name])
		}
	}
	for name := range caught {
		if !named[name] {
			t.Errorf("%s has no row for the broken store %q; write it with -update", matrixPath, name)
		}
	}
}

var caseName = regexp.MustCompile("`[^`]+`")

func rows(caught map[string][]string) string {
	var b strings.Builder
	b.WriteString("| broken store | caught by |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(caught)) {
		ids := slices.Sorted(slices.Values(caught[name]))
		fmt.Fprintf(&b, "| %s | ", name)
		for i, id := range ids[:min(len(ids), maxNamed)] {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "`%s`", id)
		}
		if more := len(ids) - maxNamed; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}
