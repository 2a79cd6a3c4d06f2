package plugin_test

import (
	"strings"
	"testing"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

const goodManifest = `{"schema":1,"name":"guard","version":"1","api_min":1,"api_max":1,"kinds":["hook"],"hooks":[{"point":"PreToolUse"}]}`

func TestParseManifest(t *testing.T) {
	m, err := plugin.ParseManifest([]byte(goodManifest))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "guard" || m.Hooks[0].Point != pluginapi.BeforeTool {
		t.Errorf("got %+v, want guard at before_tool", m)
	}
}

func TestParseManifestRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                  ``,
		"null":                     `null`,
		"a list":                   `[]`,
		"a field it does not know": strings.Replace(goodManifest, `"version"`, `"versoin":"1","version"`, 1),
		"a field that comes twice": strings.Replace(goodManifest, `"version"`, `"name":"dog","version"`, 1),
		"a second document":        goodManifest + goodManifest,
		"a broken rule":            strings.Replace(goodManifest, `"guard"`, `"Guard"`, 1),
		"a point under two names":  strings.Replace(goodManifest, `[{`, `[{"point":"before_tool"},{`, 1),
		"more than its bound":      goodManifest + strings.Repeat(" ", pluginapi.MaxManifestBytes),
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := plugin.ParseManifest([]byte(text)); err == nil {
				t.Errorf("got %+v, want an error", m)
			}
		})
	}
}
