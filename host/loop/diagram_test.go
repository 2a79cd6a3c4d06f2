package loop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const diagramPath = "../../docs/loop-diagram.md"

func TestTheCommittedDiagramIsUpToDate(t *testing.T) {
	got := Diagram()
	if *update {
		if err := os.WriteFile(diagramPath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(diagramPath)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date; write it with -update (- want, + got):\n%s", diagramPath, cmp.Diff(string(want), got))
	}
}

func TestTheDiagramHasEveryRow(t *testing.T) {
	_, table, _ := strings.Cut(Diagram(), "| from |")
	rows := strings.Count(table, "\n| ")
	if want := len(transitions); rows != want {
		t.Errorf("the table has %d rows; want %d", rows, want)
	}
	for _, tr := range transitions {
		if tr.Rule == "" {
			t.Errorf("the row from %v on %s names no rule", tr.From, tr.On)
		}
		if tr.If.Test != nil && tr.If.Name == "" {
			t.Errorf("the row from %v on %s has a condition without a name", tr.From, tr.On)
		}
		if cell := fmt.Sprintf("| `%s` |", tr.On); !strings.Contains(table, cell) {
			t.Errorf("the table lacks event %s", tr.On)
		}
		for _, p := range tr.From {
			if !strings.Contains(Diagram(), "`"+string(p)+"`") {
				t.Errorf("the document lacks phase %s", p)
			}
		}
	}
}
