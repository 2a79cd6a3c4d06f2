package ticket

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestTheCommittedDiagramIsUpToDate(t *testing.T) {
	const path = "../../docs/ticket-diagram.md"
	if *update {
		if err := os.WriteFile(path, []byte(Diagram()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), Diagram()); d != "" {
		t.Errorf("%s is out of date; write it with -update (- want, + got):\n%s", path, d)
	}
}
