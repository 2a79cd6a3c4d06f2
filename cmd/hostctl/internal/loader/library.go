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
	"slices"
	"strings"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// Library is the plugins that travel inside the binary. Only Module unpacks one,
// which takes a while.
type Library struct {
	Names            func() []string
	Digest           func(name string) (string, error)
	Manifest, Module func(name string) ([]byte, error)
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
	Digest   string // of the module
	Sidecar  []byte // plugin.json beside the module; nil: none
	Manifest pluginapi.Manifest

	wasm   []byte
	unpack func() ([]byte, error) // of a bundled one, which has no wasm
}

// Module is the plugin's WebAssembly module. A bundled one is unpacked for it.
func (s *Source) Module() ([]byte, error) {
	if s.Bundled {
		return s.unpack()
	}
	return s.wasm, nil
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

// Read reads a plugin's manifest, and of one on disk the module. The error is an
// *exit.PluginError.
func (l Library) Read(ref settings.PluginRef) (*Source, error) {
	s, err := l.Open(ref)
	if err != nil {
		return nil, err
	}
	if s.Bundled {
		s.Manifest, err = l.manifest(ref.Arg)
	} else {
		s.Manifest, err = wasm.ReadManifest(s.wasm, s.Sidecar)
	}
	if err != nil {
		return nil, &exit.PluginError{Plugin: ref.Arg, Err: err}
	}
	return s, nil
}

// Open finds a plugin, and reads one on disk; what its manifest says is not looked
// at.
func (l Library) Open(ref settings.PluginRef) (*Source, error) {
	s := &Source{Arg: ref.Arg, Path: ref.Path, Bundled: ref.Bundled()}
	var err error
	if s.Bundled {
		if err = l.known(name(ref.Arg)); err == nil {
			s.Digest, err = l.Digest(name(ref.Arg))
		}
		s.unpack = func() ([]byte, error) { return l.Module(name(ref.Arg)) }
	} else if s.wasm, s.Sidecar, err = fromDisk(ref.Path); err == nil {
		s.Digest = wasm.Digest(s.wasm)
	}
	if err != nil {
		return nil, &exit.PluginError{Plugin: ref.Arg, Err: err}
	}
	return s, nil
}

// name is the bundled plugin that an argument means.
func name(arg string) string {
	if arg == Demo {
		return DemoPlugin
	}
	return arg
}

func (l Library) known(name string) error {
	names := l.Names()
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("no plugin of that name is bundled (%s); a path needs a / or ends in .wasm", strings.Join(names, ", "))
}

func (l Library) manifest(arg string) (pluginapi.Manifest, error) {
	doc, err := l.Manifest(name(arg))
	if err != nil {
		return pluginapi.Manifest{}, err
	}
	return plugin.ParseManifest(doc)
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
