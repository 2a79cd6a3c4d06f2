package settings

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/strictyaml"
)

// swelling is a file whose aliases stand for 9 to the power of n values.
func swelling(n int) string {
	var b strings.Builder
	b.WriteString("provider-opt:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range n {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	return b.String()
}

func TestAHostileConfigFileIsOneUsageErrorWithItsLine(t *testing.T) {
	nested := func(n int) string {
		var b strings.Builder
		b.WriteString("provider-opt:\n")
		for i := range n {
			b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
		}
		return b.String()
	}
	cases := []struct{ name, data, want string }{
		{"a few lines of aliases that stand for more than the memory", swelling(12), ":2: anchors"},
		{"an alias of itself", "provider-opt:\n  x: &a [*a]\n", ":2: anchors"},
		{"a merge key", "<<: {rounds: 3}\n", ":1: anchors"},
		{"a megabyte of brackets", "model: " + strings.Repeat("[", 1<<20-10), ":1: values are nested"},
		{"maps in maps in one line", "hook-opt: " + strings.Repeat("{a: ", 1<<17), ":1: values are nested"},
		{"lists in lists in one line", strings.Repeat("- ", 1<<18), ":1: values are nested"},
		{"keys of keys", strings.Repeat("? ", 1<<18), ":1: values are nested"},
		{"one level too many", nested(strictyaml.MaxDepth), fmt.Sprintf(":%d: values are nested", strictyaml.MaxDepth+1)},
		{"a fraction of an iteration", "provider: demo\niterations: 1.5\n", ":2: iterations is 1.5; it must be a whole number"},
		{"rounds as a float", "rounds: 3.0\n", ":1: rounds is 3.0"},
		{"tokens as an exponent", "max-tokens-total: 1e3\n", ":1: max-tokens-total"},
		{"a count over its type", "iterations: 99999999999999999999\n", ":1: "},
		{"a second document", "provider: demo\n---\nprovider: scripted\n", ":3: a second document"},
		{"a list", "- a\n- b\n", ":1: "},
		{"one word", "hello\n", ":1: "},
		{"every byte", string(func() (b []byte) {
			for i := range 256 {
				b = append(b, byte(i))
			}
			return b
		}()), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse("loophost.yaml", []byte(c.data))
			var usage *exit.UsageError
			if f != nil || !errors.As(err, &usage) {
				t.Fatalf("got %v, %v; want a usage error", f, err)
			}
			if got := usage.Error(); !strings.HasPrefix(got, "config file loophost.yaml"+c.want) || len(got) > 400 {
				t.Errorf("got %q; want config file loophost.yaml%s, in a few words", got, c.want)
			}
		})
	}
}

func TestAHarmlessConfigFileIsStillRead(t *testing.T) {
	deep := "provider-opt:\n  rules: " + strings.Repeat("[", strictyaml.MaxDepth-2) + strings.Repeat("]", strictyaml.MaxDepth-2) + "\n"
	for name, data := range map[string]string{
		"nothing": "", "a comment": "# nothing\n", "an empty document": "---\n", "one marked document": "---\nrounds: 3\n...\n",
		"the deepest that is allowed": deep, "a long flat list": "hook:\n" + strings.Repeat("- redact\n", 20_000), "hexadecimal": "rounds: 0x10\n",
		"a star in a text": "until: 'echo *'\n", "dashes in a line": "system: a - b - c: d\n",
	} {
		if _, err := Parse("loophost.yaml", []byte(data)); (err != nil) != (name == "dashes in a line") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
