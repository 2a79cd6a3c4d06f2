package main

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi/schema"
)

func TestThePublishedSchemasAreThoseOfTheTypes(t *testing.T) {
	want, err := generate("../../..")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(schema.Files(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(want) {
		t.Errorf("%d files are published, %d generated", len(names), len(want))
	}
	for _, name := range names {
		got, err := fs.ReadFile(schema.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want[name]), string(got)); diff != "" {
			t.Errorf("%s is stale; run go generate ./pluginapi/schema (-generated +published):\n%s", name, diff)
		}
	}
}
