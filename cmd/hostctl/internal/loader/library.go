// Package loader turns plugin arguments into loaded plugins: what travels inside
// the binary by name, what lies on disk by path.
package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// Library is the plugins that travel inside the binary.
type Library struct {
	Names  func() []string
	Module func(name string) ([]byte, error)
}

// Demo is the name of the demonstration provider: the bundled plugin
// DemoPlugin, playing the script it has built in.
const (
	Demo       = "demo"
	DemoPlugin = "scripted"
)

// Source is a plugin's bytes and what it says about itself. Nothing of it ran.
type Source struct {
	Arg      string // as a person wrote it
	Bundled  bool
	Path     string // of the module; "": bundled
	Wasm     []byte
	Sidecar  []byte // plugin.json beside the module; nil: none
	Manifest pluginapi.Manifest
}

// Has reports whether the plugin is of kind k.
func (s *Source) Has(k pluginapi.Kind) bool {
	for _, x := range s.Manifest.Kinds {
		if x == k {
			return true
		}
	}
	return false
}

func (s *Source) requests(c pluginapi.Capability) bool {
	for _, x := range s.Manifest.Capabilities {
		if x == c {
			return true
		}
	}
	return false
}

// Read reads a plugin and its manifest. The error is an *exit.PluginError.
func (l Library) Read(ref settings.PluginRef) (*Source, error) {
	s, err := l.Open(ref)
	if err != nil {
		return nil, err
	}
	if s.Manifest, err = wasm.ReadManifest(s.Wasm, s.Sidecar); err != nil {
		return nil, &exit.PluginError{Plugin: ref.Arg, Err: err}
	}
	return s, nil
}

// Open reads a plugin's bytes only.
func (l Library) Open(ref settings.PluginRef) (*Source, error) {
	s := &Source{Arg: ref.Arg, Path: ref.Path, Bundled: ref.Bundled()}
	var err error
	if s.Bundled {
		s.Wasm, err = l.bundled(ref.Arg)
	} else {
		s.Wasm, s.Sidecar, err = fromDisk(ref.Path)
	}
	if err != nil {
		return nil, &exit.PluginError{Plugin: ref.Arg, Err: err}
	}
	return s, nil
}

func (l Library) bundled(name string) ([]byte, error) {
	if name == Demo {
		name = DemoPlugin
	}
	names := l.Names()
	for _, n := range names {
		if n == name {
			return l.Module(name)
		}
	}
	return nil, fmt.Errorf("no plugin of that name is bundled (%s); a path needs a / or ends in .wasm", strings.Join(names, ", "))
}

func fromDisk(path string) (module, sidecar []byte, err error) {
	if module, err = read(path, pluginapi.MaxModuleBytes); err != nil {
		return nil, nil, err
	}
	sidecar, err = read(filepath.Join(filepath.Dir(path), pluginapi.ManifestFile), pluginapi.MaxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return module, nil, nil
	}
	return module, sidecar, err
}

func read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}
