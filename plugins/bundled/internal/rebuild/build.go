package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/loophost/loophost/host/plugin/wasm"
	"github.com/loophost/loophost/pluginapi"
)

// maxPacked bounds a compressed module: it travels in the repository and in hostctl.
const maxPacked = 1 << 20

// repository says where things are.
type repository struct {
	plugins   string // a folder for each plugin
	bundled   string // where the built files go
	toolchain string // which Go builds them
}

// locate finds the module that the working folder is in.
func locate() (repository, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return repository{}, fmt.Errorf("go env GOMOD: %w", err)
	}
	gomod := strings.TrimSpace(string(out))
	content, err := os.ReadFile(gomod)
	if err != nil {
		return repository{}, err
	}
	for line := range strings.Lines(string(content)) {
		if toolchain, ok := strings.CutPrefix(line, "toolchain "); ok {
			plugins := filepath.Join(filepath.Dir(gomod), "plugins")
			return repository{plugins: plugins, bundled: filepath.Join(plugins, "bundled"), toolchain: strings.TrimSpace(toolchain)}, nil
		}
	}
	return repository{}, fmt.Errorf("%s has no toolchain line; modules can't be reproduced without one", gomod)
}

// files are the built ones by name.
type files map[string][]byte

// build makes every file of package bundled, from every folder that has a manifest.
func (r repository) build() (files, error) {
	manifests, err := filepath.Glob(filepath.Join(r.plugins, "*", pluginapi.ManifestFile))
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "loophost-rebuild-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	out := files{}
	var sums strings.Builder
	for _, manifest := range manifests { // sorted
		folder := filepath.Dir(manifest)
		name := filepath.Base(folder)
		module, doc, err := r.module(folder, filepath.Join(temp, name+".wasm"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		packed, err := pack(module)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(packed) > maxPacked {
			return nil, fmt.Errorf("%s has %d bytes compressed; the limit is %d", name, len(packed), maxPacked)
		}
		out[name+".wasm.gz"], out[name+".json"] = packed, doc
		fmt.Fprintf(&sums, "%x  %s.wasm\n", sha256.Sum256(module), name)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no plugin", r.plugins)
	}
	out["SHA256SUMS"] = []byte(sums.String())
	return out, nil
}

// module builds one plugin and puts its manifest in, which it gives as well.
func (r repository) module(folder, file string) (module, doc []byte, err error) {
	source, err := os.ReadFile(filepath.Join(folder, pluginapi.ManifestFile))
	if err != nil {
		return nil, nil, err
	}
	var manifest bytes.Buffer
	if err := json.Compact(&manifest, source); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", pluginapi.ManifestFile, err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-buildmode=c-shared", "-o", file, ".")
	cmd.Dir = folder
	cmd.Env = r.environment()
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("go build: %w\n%s", err, text)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	module, err = wasm.AppendManifest(code, manifest.Bytes())
	if err != nil {
		return nil, nil, err
	}
	m, err := wasm.ReadManifest(module, nil)
	if err == nil && m.Name != filepath.Base(folder) {
		err = fmt.Errorf("the manifest's name is %s, the folder's %s", m.Name, filepath.Base(folder))
	}
	return module, manifest.Bytes(), err
}

// environment fixes everything that a build's bytes depend on.
func (r repository) environment() []string {
	return append(os.Environ(),
		"GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "CGO_ENABLED=0", "GOEXPERIMENT=", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN="+r.toolchain)
}

// pack compresses without a name or time, so that equal modules pack equally.
func pack(module []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(module); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpack undoes pack.
func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, pluginapi.MaxModuleBytes+1))
}
