// Package bundled holds the plugins that travel inside hostctl: their modules,
// built from the folders beside this one and compressed.
//
//	plugins/NAME/*.go, plugin.json ── go generate ─▶ NAME.wasm.gz, NAME.json, SHA256SUMS ── embedded
//
// NAME.json is the manifest that the module has in it: who wants to know what a
// plugin is, or finds its machine code in a cache by its digest, need not unpack it.
//
// The files are reproducible: a test builds every module again with the toolchain
// that go.mod names and compares byte for byte.
package bundled

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/loophost/loophost/pluginapi"
)

//go:generate go run ./internal/rebuild

//go:embed *.wasm.gz *.json SHA256SUMS
var files embed.FS

// Errors of Module; told apart with errors.Is.
var (
	// ErrUnknown: no bundled plugin has this name. Names lists those that there are.
	ErrUnknown = errors.New("no such bundled plugin")
	// ErrDamaged: what this program carries is not what was built. Install it anew.
	ErrDamaged = errors.New("the bundled plugin is damaged")
)

// entry is one line of SHA256SUMS, in the format of sha256sum.
type entry struct{ name, digest string }

func entries() []entry {
	sums, err := files.ReadFile("SHA256SUMS")
	if err != nil {
		return nil // it is embedded
	}
	var list []entry
	for line := range strings.Lines(string(sums)) {
		digest, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if name, isModule := strings.CutSuffix(file, ".wasm"); ok && isModule {
			list = append(list, entry{name: name, digest: digest})
		}
	}
	return list
}

// Names are the bundled plugins, sorted.
func Names() []string {
	var names []string
	for _, e := range entries() {
		names = append(names, e.name)
	}
	return names
}

// Digest is the SHA-256 of a plugin's module, "sha256:" and hex, without unpacking
// it. Error: ErrUnknown.
func Digest(name string) (string, error) {
	e, err := find(name)
	return "sha256:" + e.digest, err
}

func find(name string) (entry, error) {
	for _, e := range entries() {
		if e.name == name {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("%w: %q; there are %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// Manifest is the manifest of a plugin's module, as JSON. The bytes are the
// caller's. Errors: ErrUnknown, ErrDamaged.
func Manifest(name string) ([]byte, error) {
	if _, err := find(name); err != nil {
		return nil, err
	}
	doc, err := files.ReadFile(name + ".json")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return doc, nil
}

// Module is a plugin's WebAssembly module, with its manifest in it and its
// digest verified. The bytes are the caller's. Errors: ErrUnknown, ErrDamaged.
func Module(name string) ([]byte, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	packed, err := files.ReadFile(name + ".wasm.gz")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return unpack(e, packed)
}

func unpack(e entry, packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, e.name, err)
	}
	// The size stands at the end of a gzip file; it saves growing a buffer, and
	// nothing depends on it.
	var out bytes.Buffer
	if n := len(packed); n > 4 {
		out.Grow(min(int(binary.LittleEndian.Uint32(packed[n-4:])), pluginapi.MaxModuleBytes) + bytes.MinRead)
	}
	if _, err := out.ReadFrom(io.LimitReader(z, pluginapi.MaxModuleBytes+1)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, e.name, err)
	}
	module := out.Bytes()
	if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != e.digest {
		return nil, fmt.Errorf("%w: %s has the digest %x, want %s", ErrDamaged, e.name, sum, e.digest)
	}
	return module, nil
}
