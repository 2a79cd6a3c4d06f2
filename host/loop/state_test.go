package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// stateWith is a valid state with that status, in the middle of a loop or at its end.
func stateWith(s Status) State {
	st := State{
		SchemaVersion: SchemaVersion, Generation: testGeneration, Revision: 7, OwnerExecutionID: testExecution,
		Objective: testObjective, MaxIterations: 3, MaxTotalRounds: 6,
		IterationsStarted: 2, IterationsCompleted: 1, RoundsStarted: 3,
		Status: s, ReasonCode: "earlier", Reason: "an earlier reason",
	}
	if s == Finalizing || s == Completed {
		st.IterationsStarted, st.IterationsCompleted = 3, 3
	}
	return st
}

func encoded(t testing.TB, s State) []byte {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatalf("Encode(%+v): %v", s, err)
	}
	return data
}

func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		objective          string
		iterations, rounds int64
		field, value       string // of the error; "" for none
	}{
		"the smallest loop":                        {"x", 1, 1, "", ""},
		"the largest loop":                         {strings.Repeat("x", MaxObjectiveBytes), MaxIterations, MaxRounds, "", ""},
		"fewer rounds than iterations":             {"x", 5, 2, "", ""},
		"an objective of multi-byte runes":         {strings.Repeat("é", MaxObjectiveBytes/2), 1, 1, "", ""},
		"no objective":                             {"", 1, 1, "objective", "0 bytes"},
		"an objective one byte too long":           {strings.Repeat("x", MaxObjectiveBytes+1), 1, 1, "objective", "16385 bytes"},
		"an objective short in runes, not bytes":   {strings.Repeat("é", MaxObjectiveBytes/2+1), 1, 1, "objective", "16386 bytes"},
		"an objective that is not UTF-8":           {"a\xffb", 1, 1, "objective", "UTF-8"},
		"no iterations":                            {"x", 0, 1, "iterations", "0"},
		"negative iterations":                      {"x", -1, 1, "iterations", "-1"},
		"one iteration too many":                   {"x", MaxIterations + 1, 1, "iterations", "101"},
		"iterations that wrap around 32 bits":      {"x", 1<<32 + 1, 1, "iterations", "4294967297"},
		"no rounds":                                {"x", 1, 0, "rounds", "0"},
		"negative rounds":                          {"x", 1, -5, "rounds", "-5"},
		"one round too many":                       {"x", 1, MaxRounds + 1, "rounds", "1001"},
		"rounds that wrap around 32 bits":          {"x", 1, 1<<32 + 1, "rounds", "4294967297"},
		"everything wrong names the first in line": {"", 0, 0, "objective", "0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckBounds(c.objective, c.iterations, c.rounds)
			cfg := testConfig(c.iterations, c.rounds, false, false)
			cfg.Objective = c.objective
			m, newErr := New(cfg)
			if c.field == "" {
				if err != nil || newErr != nil || m == nil {
					t.Fatalf("got %v and %v; want neither", err, newErr)
				}
				return
			}
			for _, err := range []error{err, newErr} {
				var bounds *BoundsError
				if !errors.As(err, &bounds) {
					t.Fatalf("got %v; want a *BoundsError", err)
				}
				if bounds.Field != c.field || !strings.Contains(bounds.Value, c.value) || bounds.Want == "" {
					t.Errorf("got %+v; want field %s, a value with %q and a range", bounds, c.field, c.value)
				}
			}
			if m != nil {
				t.Error("New gave a machine beside the error")
			}
		})
	}
}

func TestNewRefusesIDsThatAreNoUUIDs(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"generation": func(c *Config) { c.Generation = "g1" },
		"execution":  func(c *Config) { c.ExecutionID = "" },
	} {
		cfg := testConfig(1, 1, false, false)
		spoil(&cfg)
		if m, err := New(cfg); !errors.Is(err, ErrState) || m != nil {
			t.Errorf("%s: got %v, %v; want ErrState", name, m, err)
		}
	}
}

func TestStatesReadBackAsWritten(t *testing.T) {
	for _, s := range Statuses() {
		want := stateWith(s)
		got, err := Decode(encoded(t, want))
		if err != nil || got == nil || *got != want {
			t.Errorf("%s: got %+v, %v; want %+v", s, got, err, want)
		}
	}
}

func TestTheLargestStateFits(t *testing.T) {
	want := stateWith(Failed)
	// What JSON escapes worst: six bytes for one.
	want.Objective = strings.Repeat("\x01", MaxObjectiveBytes)
	want.Reason = strings.Repeat("<", MaxReasonBytes)
	data := encoded(t, want)
	if got, err := Decode(data); err != nil || *got != want {
		t.Errorf("the largest state (%d bytes) does not read back: %v", len(data), err)
	}
}

func TestAnAbsentStateIsNoError(t *testing.T) {
	for _, data := range []string{"", "null"} {
		if s, err := Decode([]byte(data)); s != nil || err != nil {
			t.Errorf("Decode(%q): got %v, %v; want neither", data, s, err)
		}
	}
}

// One wrong thing each, in a state that is otherwise good.
func TestAnUnusableStateIsAnError(t *testing.T) {
	good := string(encoded(t, stateWith(Running)))
	replaced := func(from, to string) string {
		if strings.Count(good, from) != 1 {
			t.Fatalf("%q is not once in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	cases := map[string]string{
		"cut short":                            good[:len(good)-1],
		"two of them":                          good + good,
		"an array":                             "[" + good + "]",
		"a string":                             `"running"`,
		"null with a space":                    " null",
		"a zero byte":                          "\x00",
		"an empty object":                      "{}",
		"a newer schema":                       replaced(`"schema_version":1`, `"schema_version":2`),
		"a newer schema with a newer field":    replaced(`"schema_version":1`, `"schema_version":2,"mood":"good"`),
		"no schema":                            replaced(`"schema_version":1,`, ``),
		"an unknown field":                     replaced(`"revision":7`, `"revision":7,"mood":"good"`),
		"a field twice":                        replaced(`"revision":7`, `"revision":7,"revision":8`),
		"a field in another case":              replaced(`"revision"`, `"Revision"`),
		"a generation that is no UUID":         replaced(testGeneration, "g1"),
		"an owner that is no UUID":             replaced(testExecution, "e1"),
		"a negative counter":                   replaced(`"rounds_started":3`, `"rounds_started":-3`),
		"a counter with a fraction":            replaced(`"rounds_started":3`, `"rounds_started":3.5`),
		"a counter as text":                    replaced(`"rounds_started":3`, `"rounds_started":"3"`),
		"a counter over 32 bits":               replaced(`"rounds_started":3`, `"rounds_started":4294967299`),
		"more rounds than allowed":             replaced(`"rounds_started":3`, `"rounds_started":7`),
		"more iterations started than allowed": replaced(`"iterations_started":2`, `"iterations_started":4`),
		"more iterations completed than begun": replaced(`"iterations_completed":1`, `"iterations_completed":3`),
		"a bound out of range":                 replaced(`"max_iterations":3`, `"max_iterations":101`),
		"no objective text":                    replaced(testObjective, ``),
		"an unknown status":                    replaced(`"status":"running"`, `"status":"paused"`),
		"an empty status":                      replaced(`"status":"running"`, `"status":""`),
		"finalizing before the last iteration": replaced(`"status":"running"`, `"status":"finalizing"`),
		"completed before the last iteration":  replaced(`"status":"running"`, `"status":"completed"`),
		"a reason that is too long":            replaced("an earlier reason", strings.Repeat("x", MaxReasonBytes+1)),
		"over the size limit":                  good + strings.Repeat(" ", MaxStateBytes),
	}
	// A field that is missing or null must not be read as zero.
	for name, value := range members(t, stateWith(Running)) {
		pair := fmt.Sprintf("%q:%s", name, value)
		missing := strings.Replace(good, pair+",", "", 1)
		if missing == good {
			missing = strings.Replace(good, ","+pair, "", 1)
		}
		cases["without "+name] = missing
		cases[name+" null"] = replaced(pair, fmt.Sprintf("%q:null", name))
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			if data == good {
				t.Fatal("the case changed nothing")
			}
			s, err := Decode([]byte(data))
			if !errors.Is(err, ErrState) || s != nil {
				t.Errorf("got %+v, %v; want ErrState", s, err)
			}
		})
	}
}

func members(t *testing.T, s State) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal(encoded(t, s), &out); err != nil {
		t.Fatal(err)
	}
	if want := reflect.TypeFor[State]().NumField(); len(out) != want {
		t.Fatalf("the encoding has %d members; want %d", len(out), want)
	}
	return out
}

// An unknown version is named as such, also when it brings fields of its own.
func TestANewerSchemaIsNamed(t *testing.T) {
	data := strings.Replace(string(encoded(t, stateWith(Running))), `"schema_version":1`, `"schema_version":2,"mood":"good"`, 1)
	if _, err := Decode([]byte(data)); err == nil || !strings.Contains(err.Error(), "schema_version 2") {
		t.Errorf("got %v; want an error that names schema_version 2", err)
	}
}

func TestAStateThatCannotBeReadBackIsNotWritten(t *testing.T) {
	for name, spoil := range map[string]func(*State){
		"another schema":             func(s *State) { s.SchemaVersion = 2 },
		"no status":                  func(s *State) { s.Status = "" },
		"a reason that is not UTF-8": func(s *State) { s.Reason = "a\xffb" },
		"a code that is not UTF-8":   func(s *State) { s.ReasonCode = "a\xffb" },
		"a code over the size limit": func(s *State) { s.ReasonCode = ReasonCode(strings.Repeat("x", MaxStateBytes)) },
	} {
		s := stateWith(Running)
		spoil(&s)
		if data, err := s.Encode(); !errors.Is(err, ErrState) || data != nil {
			t.Errorf("%s: got %q, %v; want ErrState", name, data, err)
		}
	}
}

// Whatever a hook or provider says, the reason that is kept can be stored.
func TestReasonsAreCutOnARuneBorder(t *testing.T) {
	for name, reason := range map[string]string{
		"short":          "why",
		"just fits":      strings.Repeat("x", MaxReasonBytes),
		"one too long":   strings.Repeat("x", MaxReasonBytes+1),
		"runes":          strings.Repeat("é", MaxReasonBytes),
		"wide runes":     "x" + strings.Repeat("𝄞", MaxReasonBytes),
		"not UTF-8":      strings.Repeat("\xff", MaxReasonBytes),
		"cut in the end": strings.Repeat("x", 10) + "\xe2\x82",
	} {
		for _, ev := range []Event{{Kind: EvProviderFailed, Reason: reason}, {Kind: EvStop, Reason: reason}, {Kind: EvBudgetSpent, Reason: reason}, {Kind: EvCancel, Reason: reason}} {
			p := newPlayer(t, testConfig(2, 2, false, false))
			p.reach(Calling, manner{})
			p.must(ev)
			p.reach(Done, manner{})
			got := p.m.State().Reason
			if len(got) > MaxReasonBytes || !utf8.ValidString(got) {
				t.Errorf("%s, %s: %d bytes, valid %t", name, ev.Kind, len(got), utf8.ValidString(got))
			}
			if len(reason) <= MaxReasonBytes && utf8.ValidString(reason) && got != reason {
				t.Errorf("%s, %s: got %q; want it whole", name, ev.Kind, got)
			}
			if len(reason) > MaxReasonBytes && !strings.HasSuffix(got, "…") {
				t.Errorf("%s, %s: a cut reason has no ellipsis", name, ev.Kind)
			}
		}
	}
}

func TestFlippedBytesNeverPanic(t *testing.T) {
	for _, status := range Statuses() {
		data := encoded(t, stateWith(status))
		for i := range data {
			for _, mask := range []byte{0x01, 0x10, 0x20, 0x80, 0xff} {
				spoilt := append([]byte(nil), data...)
				spoilt[i] ^= mask
				checkDecoded(t, spoilt)
			}
		}
	}
}

// checkDecoded checks the promise of Decode for any bytes.
func checkDecoded(t *testing.T, data []byte) {
	t.Helper()
	s, err := Decode(data)
	switch {
	case err != nil:
		if !errors.Is(err, ErrState) || s != nil {
			t.Errorf("%q: got %+v, %v; want ErrState alone", data, s, err)
		}
	case s == nil:
		if len(data) != 0 && string(data) != "null" {
			t.Errorf("%q was read as absent", data)
		}
	default:
		again, err := Decode(encoded(t, *s))
		if err != nil || *again != *s {
			t.Errorf("%q: read as %+v, which reads back as %+v, %v", data, s, again, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, status := range Statuses() {
		f.Add(encoded(f, stateWith(status)))
	}
	f.Add([]byte(nil))
	f.Add([]byte("null"))
	f.Add([]byte(`{"schema_version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) { checkDecoded(t, data) })
}
