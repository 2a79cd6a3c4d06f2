//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

func TestAnObjectiveIsOneTo16384BytesOfUTF8HoweverItIsGiven(t *testing.T) {
	c := newCommander(t)
	file := filepath.Join(t.TempDir(), "objective")
	for _, o := range []struct {
		name, text string
		code       exit.Code
	}{
		{"nothing", "", exit.Usage},
		{"the largest", strings.Repeat("x", 16_384), exit.OK},
		{"the largest, of two-byte characters", strings.Repeat("é", 8_192), exit.OK},
		{"a byte more", strings.Repeat("x", 16_385), exit.Usage},
		{"far more", strings.Repeat("x", 1<<20), exit.Usage},
		{"a byte that is no UTF-8", "a\xffb", exit.Usage},
		{"a character cut in the middle", "a\xc3", exit.Usage},
		{"a surrogate", "\xed\xa0\x80", exit.Usage},
		{"a NUL", "a\x00b", exit.OK},
	} {
		t.Run(o.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(o.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c.in = o.text
			ways := [][]string{{"-"}, {"@" + file}, {"-p", "-"}, {"--prompt=@" + file}, {"--", o.text}, {"--prompt=" + o.text}}
			if o.code == exit.OK {
				ways = ways[:2+len(o.text)%2*2] // each of these is a whole run
			}
			for _, way := range ways {
				args := append([]string{"run", "--provider", "demo", "--config=", "--output=json", "--quiet", "--session=s"}, way...)
				got := c.want(t, o.code, args...)
				if o.code == exit.Usage && got.kind(t) != "bounds" {
					t.Errorf("%.20q: got %.300q, want bounds", way, got.out)
				}
			}
			if o.code == exit.OK && !strings.Contains(c.want(t, exit.OK, "session", "log", "s", "--output=jsonl").out, fmt.Sprintf("%.40s", strings.Trim(o.text, "\x00ab"))) {
				t.Error("the log does not have it")
			}
		})
	}
	c.want(t, exit.Usage, "run", "--provider", "demo", "--config=", "@"+c.dir) // a folder
	c.want(t, exit.Usage, "run", "--provider", "demo", "--config=", "@/dev/zero")
}

func TestCountsOutOfBoundsAreUsageErrorsWithTheRange(t *testing.T) {
	c := newCommander(t)
	for _, k := range []struct{ flag, value, says string }{
		{"iterations", "0", "iterations is 0; it must be 1 to 100"},
		{"iterations", "101", "iterations is 101; it must be 1 to 100"},
		{"iterations", "-1", "iterations is -1; it must be 1 to 100"},
		{"iterations", "9223372036854775807", "must be 1 to 100"},
		{"iterations", "9223372036854775808", "iterations"},
		{"iterations", "-9223372036854775808", "must be 1 to 100"},
		{"iterations", "many", "iterations"},
		{"iterations", "1.5", "iterations"},
		{"iterations", "1e1", "iterations"},
		{"iterations", "", "iterations"},
		{"iterations", " 1", "iterations"},
		{"rounds", "0", "rounds is 0; it must be 1 to 1000"},
		{"rounds", "1001", "rounds is 1001; it must be 1 to 1000"},
		{"rounds", "-1", "rounds is -1; it must be 1 to 1000"},
		{"rounds", "4294967297", "must be 1 to 1000"},
		{"max-turns", "0", "must be 1 to 1000"},
		{"max-iterations", "101", "must be 1 to 100"},
		{"max-tokens-total", "-1", "max-tokens-total"},
		{"timeout", "-1s", "timeout"},
		{"drain-timeout", "9999999999999999999s", "drain-timeout"},
		{"wait", "NaNs", "wait"},
	} {
		got := c.want(t, exit.Usage, "run", "--provider", "demo", "--config=", "--output=json", "--"+k.flag+"="+k.value, "go")
		if kind := got.kind(t); kind != "bounds" && kind != "usage" || !strings.Contains(got.err, k.says) {
			t.Errorf("--%s=%s: got %q, want it to say %q", k.flag, k.value, got.err, k.says)
		}
	}
	if _, err := os.Stat(c.store()); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}

func TestOptionsOfPluginsAreCheckedBeforeAnythingRuns(t *testing.T) {
	c := newCommander(t)
	c.want(t, exit.OK, "run", "--provider", "demo", "--config=", "--quiet", "--hook=stop-when", "--hook-opt=stop-when.pattern=x", "go") // warms the cache
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte(`"\xff"`+"\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("[", 100_000)
	run := func(option string) []string {
		return []string{"run", "--provider", "demo", "--config=", "--output=json", "--quiet", "--session=s", "--hook=stop-when", "--hook-opt=" + option, "go"}
	}
	for _, option := range []string{
		"", "stop-when", "stop-when.", ".pattern=x", "stop-when.=x", "stop-when=x.y", "nobody.pattern=x",
		"stop-when.pattern=\xff", "stop-when.pattern=@" + bad, "stop-when.pattern=@/dev/zero", "stop-when.pattern=@" + c.dir + "/none", "stop-when.pattern=@" + c.dir,
	} {
		if got := c.want(t, exit.Usage, run(option)...); got.kind(t) != "usage" {
			t.Errorf("%.60q: got %.300q, want usage", option, got.out)
		}
	}
	// The plugin's schema refuses a value that is JSON and no text.
	for option, kind := range map[string]string{
		"stop-when.surprise=1":                                         "plugin",
		"stop-when.pattern=" + `{"a":1,"a":2}`:                         "plugin",
		"stop-when.pattern=1e999":                                      "plugin",
		"stop-when.pattern=" + deep[:5000] + strings.Repeat("]", 5000): "plugin",
	} {
		got := c.want(t, exit.Failed, run(option)...)
		if got.kind(t) != kind || len(got.err) > 10_000 {
			t.Errorf("%.60q: got %.300q, want %s in a few words", option, got.err, kind)
		}
	}
	c.want(t, exit.Error, "session", "show", "s")
	// What only the plugin understands fails the run, durably.
	for _, option := range []string{"stop-when.pattern=(", "stop-when.pattern=" + deep} {
		if got := c.want(t, exit.Failed, run(option)...); got.kind(t) != "hook_abort" {
			t.Errorf("%.60q: got %.300q, want hook_abort", option, got.err)
		}
	}
	for _, flag := range []string{"--system", "--model"} {
		c.want(t, exit.Usage, "run", "--provider", "demo", "--config=", flag+"=a\xff", "go")
	}
	c.want(t, exit.Usage, "run", "--provider", "demo", "--config=", "--system=@"+bad, "go")
	c.want(t, exit.Usage, "run", "--provider", "scripted", "--config=", "--provider-opt=script=\xff", "go")
}
