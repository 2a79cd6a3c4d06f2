package loop

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A scenario file is a list of stanzas, separated by empty lines: comments that
// start with "#", then commands, one a line, then "----" and what the commands
// printed. The commands:
//
//	loop K=2 R=4 [after_round] [verifier]   a new machine
//	reach PHASE [tools] [passed]            answer everything well until PHASE; prints the last line only
//	drain [tools] [passed]                  answer everything well until the end
//	found STATUS RUNTIME                    what a new owner does with such a loop (L-3)
//	EVENT [tools] [passed] [code=CODE] [reason=TEXT TO THE END OF THE LINE]
//
// After each event comes a line with phase, counters (iterations started,
// iterations completed, rounds started), loop status and runtime status, the
// loop's revision, "durable" where memory is known to be stored, and the rules
// of the rows that were taken; then the effects.
type scenario struct {
	t       *testing.T
	p       *player
	covered map[row]int
	out     strings.Builder
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return paths
}

func TestScenarios(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			got := playScenario(t, path, nil)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is out of date; read the difference, then -update (- want, + got):\n%s", path, cmp.Diff(string(want), string(got)))
			}
		})
	}
}

// playScenario runs the commands of a file and returns it with what they print now.
func playScenario(t *testing.T, path string, covered map[row]int) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{t: t, covered: covered}
	var out bytes.Buffer
	for i, stanza := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		commands := false
		for line := range strings.SplitSeq(stanza, "\n") {
			if line == "----" {
				break
			}
			out.WriteString(line + "\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			commands = true
			if err := s.command(line); err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
		}
		if commands {
			out.WriteString("----\n" + s.out.String())
			s.out.Reset()
		}
	}
	return out.Bytes()
}

func (s *scenario) command(line string) error {
	line, reason, _ := strings.Cut(line, " reason=")
	words := strings.Fields(line)
	name, args := words[0], words[1:]
	if name == "found" {
		return s.found(args)
	}
	var how manner
	ev := Event{Kind: EventKind(name), Reason: reason}
	k, r, afterRound, verifier := int64(1), int64(1), false, false
	phase := Done
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch {
		case arg == "tools":
			how.tools, ev.ToolCalls = true, true
		case arg == "passed":
			how.passed, ev.Passed = true, true
		case arg == "after_round":
			afterRound = true
		case arg == "verifier":
			verifier = true
		case key == "code":
			ev.Code = ReasonCode(value)
		case key == "K":
			k, err = strconv.ParseInt(value, 10, 64)
		case key == "R":
			r, err = strconv.ParseInt(value, 10, 64)
		case name == "reach":
			phase = Phase(arg)
		default:
			err = fmt.Errorf("unknown word %q", arg)
		}
		if err != nil {
			return err
		}
	}
	switch name {
	case "loop":
		return s.loop(testConfig(k, r, afterRound, verifier))
	case "reach":
		s.p.reach(phase, how)
		s.line("reach " + string(phase))
	case "drain":
		for s.p.m.Phase() != Done {
			s.event(s.p.next(how))
		}
	default:
		s.event(ev)
	}
	return nil
}

func (s *scenario) loop(cfg Config) error {
	if _, err := New(cfg); err != nil {
		fmt.Fprintf(&s.out, "refused: %v\n", err)
		return nil
	}
	s.p = newPlayer(s.t, cfg)
	s.p.covered = s.covered
	return nil
}

func (s *scenario) event(ev Event) {
	effects, err := s.p.step(ev)
	if err != nil {
		fmt.Fprintf(&s.out, "%s: error: %v\n", ev.Kind, err)
		return
	}
	s.line(string(ev.Kind))
	for _, ef := range effects {
		words := []string{string(ef.Kind)}
		if ef.Checkpoint != "" {
			words = append(words, string(ef.Checkpoint))
		}
		if ef.NewIteration {
			words = append(words, "new_iteration")
		}
		if ef.Publish != "" {
			words = append(words, string(ef.Publish))
		}
		if ef.Text != "" {
			words = append(words, strconv.Quote(ef.Text))
		}
		fmt.Fprintf(&s.out, "    %s\n", strings.Join(words, " "))
	}
	if m := s.p.m; m.Phase() == Done {
		st := m.State()
		fmt.Fprintf(&s.out, "ended: %s, reason %q %q, provider calls %d, complete events %d, fenced %t, checkpoint failed %t\n",
			ResultOf(st.Status, st.ReasonCode), st.ReasonCode, st.Reason, s.p.calls, s.p.completes, m.Fenced(), m.CheckpointFailed())
	}
}

func (s *scenario) line(what string) {
	m := s.p.m
	st := m.State()
	durable := ""
	if m.Durable() {
		durable = " durable"
	}
	var rules []string
	for _, r := range s.p.rows {
		rules = append(rules, r.transition.Rule)
	}
	fmt.Fprintf(&s.out, "%-17s → %-10s %s %s/%s rev %d%s [%s]\n", what, m.Phase(), s.p.counters(), st.Status, m.Runtime().Status, st.Revision, durable, strings.Join(rules, ", "))
}

// found prints what a new owner does with a loop that it finds.
func (s *scenario) found(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want a status and a runtime status")
	}
	st, rt := stateWith(Status(args[0])), Runtime{Status: RuntimeStatus(args[1]), ExecutionID: testExecution}
	plan := PlanRecovery(&st, rt)
	next, nextRuntime := Recovered(st, rt, plan)
	fmt.Fprintf(&s.out, "found %s/%s rev %d: %s → %s/%s %s rev %d\n", st.Status, rt.Status, st.Revision, plan, next.Status, nextRuntime.Status, next.ReasonCode, next.Revision)
	return nil
}

// The scenarios name every rule that the machine implements.
func TestScenariosNameEveryRule(t *testing.T) {
	var all strings.Builder
	for _, path := range scenarioFiles(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if strings.HasPrefix(line, "#") {
				all.WriteString(line + " ")
			}
		}
	}
	named := map[string]bool{}
	for word := range strings.FieldsFuncSeq(all.String(), func(r rune) bool { return strings.ContainsRune(" :,.;()…", r) }) {
		named[word] = true
	}
	rules := []string{"L-20", "L-21", "L-25", "L-27", "M-1", "M-2"}
	for i := 1; i <= 19; i++ {
		rules = append(rules, fmt.Sprintf("L-%d", i))
	}
	for _, rule := range rules {
		if !named[rule] {
			t.Errorf("no scenario's comment names %s", rule)
		}
	}
}
