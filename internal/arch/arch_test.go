package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/loophost/loophost/"

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list named only %d packages", len(all))
	}
	return all
}

// layers says what of this module a package may import: the first row whose
// folder is the package's or above it. A package may always import what lies
// below its own folder, and internal packages.
var layers = []struct {
	folder string
	may    []string
}{
	{"pluginapi", []string{"pluginapi"}},
	{"host/loop", nil},
	{"host/ticket/scope", []string{"host/ticket", "host/store"}},
	{"host/ticket", nil},
	{"host/store", nil},
	{"host/plugin", []string{"host/plugin", "pluginapi"}},
	{"host", []string{"host/loop", "host/ticket", "host/store", "host/plugin", "pluginapi"}},
	{"backends", []string{"host/store"}},
	{"conformance", []string{"host", "pluginapi"}},
	{"plugins/bundled/internal/rebuild", []string{"host/plugin/wasm", "pluginapi"}}, // it puts the manifests in
	{"plugins", []string{"pluginapi", "plugins"}},
	{"internal", []string{"pluginapi"}},
	{"cmd/hostctl", []string{"cmd/hostctl", "backends", "conformance", "host", "pluginapi", "plugins/bundled"}},
}

func under(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func TestArrowsPointDownOnly(t *testing.T) {
	for _, p := range packages(t) {
		self := strings.TrimPrefix(p.ImportPath, module)
		row := slices.IndexFunc(layers, func(l struct {
			folder string
			may    []string
		},
		) bool {
			return under(self, l.folder)
		})
		if row < 0 {
			t.Errorf("%s is in no layer of the table", self)
			continue
		}
		l := layers[row]
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if !ours || under(dep, "internal") || under(dep, l.folder) {
				continue
			}
			if !slices.ContainsFunc(l.may, func(f string) bool { return under(dep, f) }) {
				t.Errorf("%s imports %s; %s may import %v", self, dep, l.folder, l.may)
			}
		}
	}
}

func TestTheHostDoesNotKnowWhatLoadsAPlugin(t *testing.T) {
	for _, p := range packages(t) {
		self := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			dep, _ := strings.CutPrefix(imp, module)
			loader := under(dep, "host/plugin") && dep != "host/plugin"
			if loader && !under(self, "host/plugin") && !under(self, "cmd/hostctl") && !under(self, "plugins") && !under(self, "internal") {
				t.Errorf("%s imports the loader %s", self, dep)
			}
		}
	}
}

// owners are the folders that alone may import a library.
var owners = map[string]string{
	"github.com/tetratelabs/wazero":   "host/plugin/wasm",
	"github.com/redis/go-redis":       "backends/redis",
	"github.com/hashicorp/go-plugin":  "host/plugin/process",
	"github.com/spf13/cobra":          "cmd/hostctl",
	"charm.land/lipgloss":             "cmd/hostctl",
	"github.com/goccy/go-yaml":        "cmd/hostctl",
	"github.com/rogpeppe/go-internal": "cmd/hostctl",
}

func TestALibraryHasOneOwner(t *testing.T) {
	for _, p := range packages(t) {
		self := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for lib, owner := range owners {
				if under(imp, lib) && !under(self, owner) {
					t.Errorf("%s imports %s, which is %s's alone", self, imp, owner)
				}
			}
		}
	}
}

func TestTheContractUsesTheStandardLibraryOnly(t *testing.T) {
	for _, p := range packages(t) {
		self := strings.TrimPrefix(p.ImportPath, module)
		if self != "pluginapi" && !under(self, "pluginapi/guest") {
			continue
		}
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imp, module+"pluginapi") {
				t.Errorf("%s imports %s", self, imp)
			}
		}
	}
}

func TestThePureCoreStaysPure(t *testing.T) {
	impure := []string{"context", "os", "net", "log", "log/slog", "time", "sync", "sync/atomic", "syscall", "math/rand", "math/rand/v2"}
	for _, p := range packages(t) {
		self := strings.TrimPrefix(p.ImportPath, module)
		if self != "host/loop" && self != "host/ticket" {
			continue
		}
		for _, imp := range p.Imports {
			if slices.Contains(impure, imp) || strings.HasPrefix(imp, "net/") || strings.HasPrefix(imp, "os/") {
				t.Errorf("%s imports %s", self, imp)
			}
		}
	}
}

func TestTheSuiteKnowsNoBackendAndOnlyTheCommandDoes(t *testing.T) {
	for _, p := range packages(t) {
		self := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if dep, ours := strings.CutPrefix(imp, module); ours && under(dep, "backends") && !under(self, "backends") && !under(self, "cmd/hostctl") {
				t.Errorf("%s imports the backend %s", self, dep)
			}
			if imp == module+"internal/bench" {
				t.Errorf("%s imports the benchmarks' kit outside tests", self)
			}
			if imp == "testing" && !under(self, "conformance") && !under(self, "pluginapi/guest") && self != "internal/bench" {
				t.Errorf("%s imports testing outside tests", self)
			}
		}
	}
}

func TestNoPackageIsADrawer(t *testing.T) {
	for _, p := range packages(t) {
		switch name := path.Base(p.ImportPath); name {
		case "util", "utils", "common", "shared", "helpers", "misc":
			t.Errorf("%s: %q says nothing about what is inside", p.ImportPath, name)
		}
	}
}
