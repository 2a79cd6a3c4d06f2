// Command table runs the benchmarks that have a target and prints what they
// measured as one table of ratios. It judges nothing: a busy machine fails no one.
//
//	go run ./internal/bench/table [-turns 9] [-procs 8] [-only fs]
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// group is one package's benchmarks.
type group struct{ name, pkg, bench string }

var groups = []group{
	{"fs", "./backends/fs", "^Benchmark(Commit|CommitAge|OpenLong)$"},
	{"redis", "./backends/redis", "^Benchmark(Commit|CommitAge|Page)$"}, // nothing without a redis-server
	{"rounds", "./host", "^BenchmarkRound(s|Age)$"},
	{"tickets", "./host/ticket", "^BenchmarkDecide$"},
	{"scopes", "./host/ticket/scope", "^BenchmarkScope(Command|Open)$"},
	{"hooks", "./plugins/bundled", "^Benchmark(HookCall|Scripted)$"},
	{"c-hook", "./plugins/examples", "^BenchmarkHookInC$"},
	{"cold", "./cmd/hostctl", "^BenchmarkColdRun$"},
}

// target is what a row's metric should be. lower says that less is better.
type target struct {
	row    *regexp.Regexp
	metric string
	lower  bool
	value  float64
}

var targets = []target{
	{regexp.MustCompile(`^Commit/messages=\d+/writers=1$`), "x-floor", true, 0.70},
	{regexp.MustCompile(`^Commit/messages=.*/writers=16$`), "x-floor", true, 0.95},
	{regexp.MustCompile(`^Commit/messages=.*/writers=64$`), "x-floor", true, 1.15},
	{regexp.MustCompile(`^Commit/fsync=always/.*/writers=1$`), "x-floor", true, 1.7},
	{regexp.MustCompile(`^Commit/fsync=always/.*/writers=64$`), "x-floor", true, 1 / 0.65},
	{regexp.MustCompile(`^Page/`), "x-floor", true, 1.15},
	{regexp.MustCompile(`^CommitAge$`), "x-floor", true, 1.15},
	{regexp.MustCompile(`^OpenLong$`), "ms/open", true, 20},
	{regexp.MustCompile(`^Rounds/fs/.*/sessions=1$`), "of-floor", false, 1.1},
	{regexp.MustCompile(`^Rounds/fs/.*/sessions=16$`), "of-floor", false, 0.9},
	{regexp.MustCompile(`^Rounds/fs/.*/sessions=64$`), "of-floor", false, 0.7},
	{regexp.MustCompile(`^RoundAge/`), "x-floor", true, 1.10},
	{regexp.MustCompile(`^Decide/`), "x-floor", true, 1.5},
	{regexp.MustCompile(`^ScopeCommand/`), "x-floor", true, 1.5},
	{regexp.MustCompile(`^ScopeOpen/`), "ms/open", true, 2_000},
	{regexp.MustCompile(`^HookCall/.*/1KiB$`), "µs/step", true, 10},
	{regexp.MustCompile(`^HookCall/.*/64KiB$`), "µs/step", true, 450},
	{regexp.MustCompile(`^HookInC$`), "µs/step", true, 4},
	{regexp.MustCompile(`^ColdRun$`), "ms/first-round", true, 300},
}

func main() {
	turns := flag.Int("turns", 9, "turns of each benchmark; a ratio is the median of them")
	procs := flag.Int("procs", 8, "GOMAXPROCS of the benchmarks")
	only := flag.String("only", "", "one group: fs, redis, rounds, tickets, scopes, hooks, c-hook or cold (default: all)")
	flag.Parse()
	if err := run(os.Stdout, *turns, *procs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, turns, procs int, only string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "benchmark (GOMAXPROCS %d)\tmeasured\tfloor\tx-floor\ttarget\t\n", procs)
	known := false
	for _, g := range groups {
		if only != "" && only != g.name {
			continue
		}
		known = true
		rows, err := measure(g, turns, procs)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Fprintln(w, r.String())
		}
	}
	if !known {
		return fmt.Errorf("there is no group %q", only)
	}
	return w.Flush()
}

// row is one benchmark's metrics.
type row struct {
	name    string
	metrics map[string]float64
}

// measure runs one group. GOMAXPROCS comes from the environment: -test.cpu does not
// reach the first run of a benchmark that uses Loop.
func measure(g group, turns, procs int) ([]row, error) {
	cmd := exec.Command("go", "test", g.pkg, "-run", "^$", "-bench", g.bench, "-benchtime", fmt.Sprintf("%dx", turns), "-count", "1", "-timeout", "0")
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", g.pkg, err, output)
	}
	return parse(output), nil
}

var suffix = regexp.MustCompile(`-\d+$`)

// parse reads the lines that go test prints for benchmarks: the name, the number of
// turns, and pairs of a value and its unit.
func parse(output []byte) []row {
	var rows []row
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		r := row{name: suffix.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), ""), metrics: map[string]float64{}}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				r.metrics[f[i+1]] = v
			}
		}
		if x := r.metrics["x-floor"]; x > 0 {
			r.metrics["of-floor"] = 1 / x
		}
		rows = append(rows, r)
	}
	return rows
}

func (r row) String() string {
	cell := func(metric, format string) string {
		if v, ok := r.metrics[metric]; ok {
			return fmt.Sprintf(format, v)
		}
		return "–"
	}
	measured := cell("µs/step", "%.1f µs")
	for metric, format := range map[string]string{"ms/open": "%.1f ms", "ms/first-round": "%.0f ms"} {
		if _, ok := r.metrics[metric]; ok {
			measured = cell(metric, format)
		}
	}
	return strings.Join([]string{r.name, measured, cell("floor-µs/step", "%.1f µs"), cell("x-floor", "%.2f"), r.target(), ""}, "\t")
}

// target is the row's target beside what was measured for it; "": it has none.
func (r row) target() string {
	for _, t := range targets {
		got, measured := r.metrics[t.metric]
		if !measured || !t.row.MatchString(r.name) {
			continue
		}
		sign, met := "≥", got >= t.value
		if t.lower {
			sign, met = "≤", got <= t.value
		}
		verdict := "missed"
		if met {
			verdict = "met"
		}
		return fmt.Sprintf("%s %s %.4g: %.3g, %s", t.metric, sign, t.value, got, verdict)
	}
	return ""
}
