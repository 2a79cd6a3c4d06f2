package wasm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// Errors of manifests; told apart with errors.Is.
var (
	// ErrNoManifest: neither the module nor a file beside it has a manifest. Add one with AppendManifest.
	ErrNoManifest = errors.New("no manifest")
	// ErrManifestDiffers: module and file beside it both have one and they say different things. Remove one.
	ErrManifestDiffers = errors.New("the manifest in the module and the one beside it differ")
)

// ReadManifest reads a module's manifest from its custom section
// "loophost.manifest", from sidecar (the content of plugin.json beside the
// module; nil: there is none), or from both when they say the same. Nothing is
// run. Errors: ErrNoManifest, ErrManifestDiffers, or what is wrong with the module
// or the document.
func ReadManifest(wasm, sidecar []byte) (pluginapi.Manifest, error) {
	secs, err := sections(wasm)
	if err != nil {
		return pluginapi.Manifest{}, err
	}
	return manifestOf(secs, sidecar)
}

func manifestOf(secs []section, sidecar []byte) (pluginapi.Manifest, error) {
	inside, err := embedded(secs)
	switch {
	case err != nil:
		return pluginapi.Manifest{}, err
	case inside == nil && sidecar == nil:
		return pluginapi.Manifest{}, fmt.Errorf("%w: the module has no custom section %s and there is no %s beside it", ErrNoManifest, pluginapi.ManifestSection, pluginapi.ManifestFile)
	case inside == nil:
		return parseManifest(sidecar, pluginapi.ManifestFile)
	}
	m, err := parseManifest(inside, "section "+pluginapi.ManifestSection)
	if err != nil || sidecar == nil {
		return m, err
	}
	beside, err := parseManifest(sidecar, pluginapi.ManifestFile)
	if err != nil {
		return pluginapi.Manifest{}, err
	}
	if !sameManifest(m, beside) {
		return pluginapi.Manifest{}, fmt.Errorf("%w: plugin %s and plugin %s", ErrManifestDiffers, m.Name, beside.Name)
	}
	return m, nil
}

// embedded is the manifest section's content; nil: there is none.
func embedded(secs []section) ([]byte, error) {
	var found []byte
	for _, s := range secs {
		if s.id != secCustom || s.name != pluginapi.ManifestSection {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the module has the custom section %s twice", pluginapi.ManifestSection)
		}
		found = s.body
	}
	return found, nil
}

func parseManifest(doc []byte, where string) (pluginapi.Manifest, error) {
	m, err := plugin.ParseManifest(doc)
	if err != nil {
		return m, fmt.Errorf("%s: %w", where, err)
	}
	return m, nil
}

// sameManifest compares what two manifests say, whatever their spacing.
func sameManifest(a, b pluginapi.Manifest) bool {
	var x, y any
	for _, p := range []struct {
		m   pluginapi.Manifest
		out *any
	}{{a, &x}, {b, &y}} {
		data, err := json.Marshal(p.m)
		if err != nil {
			return false
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if d.Decode(p.out) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}

// AppendManifest returns a copy of a module with manifestJSON in the custom
// section "loophost.manifest", at its end. A section of that name that is there
// already is replaced. The document must be a valid manifest.
func AppendManifest(wasm, manifestJSON []byte) ([]byte, error) {
	if _, err := parseManifest(manifestJSON, "manifest"); err != nil {
		return nil, err
	}
	secs, err := sections(wasm)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(wasm)+len(manifestJSON)+64)
	out = append(out, preamble...)
	for _, s := range secs {
		if s.id != secCustom || s.name != pluginapi.ManifestSection {
			out = append(out, s.raw...)
		}
	}
	return appendCustom(out, pluginapi.ManifestSection, manifestJSON), nil
}

// appendU32 appends v in unsigned LEB128.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
