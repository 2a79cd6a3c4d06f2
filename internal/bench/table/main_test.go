package main

import (
	"strings"
	"testing"
)

func TestATableRowSaysWhatWasMeasuredAndWhetherThatIsEnough(t *testing.T) {
	const output = "goos: linux\n" +
		"BenchmarkCommit/messages=10/writers=16-8 \t 7 \t 165.1 floor-µs/step \t 8.000 procs \t 2.000 x-floor \t 330.2 µs/step\n" +
		"BenchmarkRounds/fs/hooks=1/sessions=1-8  7  50.0 floor-µs/step  0.5 x-floor  25.0 µs/step\n" +
		"BenchmarkOpenLong-8  7  2175000 ns/op  2.175 ms/open\n" +
		"BenchmarkScripted-8  7  22.4 floor-µs/step  1.02 x-floor  23.2 µs/step\nPASS\n"
	want := []string{
		"Commit/messages=10/writers=16|330.2 µs|165.1 µs|2.00|x-floor ≤ 0.95: 2, missed|",
		"Rounds/fs/hooks=1/sessions=1|25.0 µs|50.0 µs|0.50|of-floor ≥ 1.1: 2, met|",
		"OpenLong|2.2 ms|–|–|ms/open ≤ 20: 2.17, met|",
		"Scripted|23.2 µs|22.4 µs|1.02||",
	}
	rows := parse([]byte(output))
	if len(rows) != len(want) {
		t.Fatalf("got %d rows, want %d", len(rows), len(want))
	}
	for i, r := range rows {
		if got := strings.ReplaceAll(r.String(), "\t", "|"); got != want[i] {
			t.Errorf("row %d: got %q, want %q", i, got, want[i])
		}
	}
}

func TestAnUnknownGroupIsAnError(t *testing.T) {
	if err := run(new(strings.Builder), 1, 1, "nothing"); err == nil {
		t.Error("got none, want an error that names the group")
	}
}
