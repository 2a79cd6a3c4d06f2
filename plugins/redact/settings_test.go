package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func readManifest(t *testing.T, m *pluginapi.Manifest) {
	t.Helper()
	b, err := os.ReadFile(pluginapi.ManifestFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
}

func TestConfigurationErrorsSayWhatIsWrongAndNoSecret(t *testing.T) {
	cases := []struct{ name, config, want string }{
		{"an unknown setting", `{"literal": []}`, `unknown field "literal"`},
		{"a name with a space", `{"literals": [{"name": "a b", "text": "hunter22"}]}`, "the name of a secret is not"},
		{"no name", `{"patterns": [{"regexp": "hunter22"}]}`, "the name of a secret is not"},
		{"a short literal", `{"literals": [{"name": "pw", "text": "hun"}]}`, "the text of pw is shorter than 4 bytes"},
		{"a broken pattern", `{"patterns": [{"name": "p", "regexp": "("}]}`, "patterns: p: error parsing regexp"},
		{"a pattern for nothing", `{"patterns": [{"name": "p", "regexp": "x*"}]}`, "patterns: p matches the empty text"},
		{"an unknown built-in", `{"except": ["jwt", "jwtt"]}`, `except: there is no built-in "jwtt"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := &guesttest.Host{Config: c.config}
			_, err := h.Hook(newPlugin(), pluginapi.BeforePrompt, pluginapi.PromptDoc{Text: "x"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if strings.Contains(err.Error(), "hun") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestTheManifestNamesEveryBuiltin(t *testing.T) {
	var m pluginapi.Manifest
	readManifest(t, &m)
	var schema struct {
		Properties struct {
			Except struct {
				Items struct {
					Enum []string `json:"enum"`
				} `json:"items"`
			} `json:"except"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(m.Config, &schema); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range builtins {
		names = append(names, p.name)
		if len(p.hints) == 0 {
			t.Errorf("%s has no hints", p.name)
		}
		for _, h := range p.hints {
			if h != strings.ToLower(h) {
				t.Errorf("%s: the hint %q is not in lower case", p.name, h)
			}
		}
	}
	if diff := cmp.Diff(names, schema.Properties.Except.Items.Enum); diff != "" {
		t.Errorf("built-in patterns and the manifest's list (-code +manifest):\n%s", diff)
	}
}
