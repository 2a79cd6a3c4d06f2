package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Errors of a module's digest; told apart with errors.Is.
var (
	// ErrDigest: a module's bytes are not the ones that were approved.
	ErrDigest = errors.New("the digest is not the approved one")
	// ErrNoDigest: a Module with a Source has no digest, or one that can't be.
	ErrNoDigest = errors.New("a module that is fetched when it is needed must come with its digest, sha256: and 64 hex digits")
)

// Module is what Load loads.
type Module struct {
	// Path is where the module came from, for messages only; "": the manifest's name is used.
	Path string
	Wasm []byte
	// Source gives the bytes where Wasm is nil. It is asked only when the compilation
	// cache has nothing of Digest, which must be given then; the bytes must have it.
	Source func() ([]byte, error)
	// SidecarManifest is the plugin.json beside the module; nil: there is none.
	SidecarManifest []byte
	// Digest, if not "", is the approved one: "sha256:" and 64 hex digits in lower case.
	Digest string
	// Config is the operator's configuration of the plugin, a JSON object; empty: {}.
	Config json.RawMessage
	Grants Grants
}

// digest is the module's: of its bytes where they are there, else the promised one.
func (m *Module) digest() (string, error) {
	if m.Wasm == nil && m.Source != nil {
		return m.Digest, checkDigest(m.Digest)
	}
	d := Digest(m.Wasm)
	if m.Digest != "" && m.Digest != d {
		return d, wrongDigest(m.Digest, d)
	}
	return d, nil
}

// checkDigest refuses what is no digest: it becomes the name of a folder.
func checkDigest(digest string) error {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != digits {
		return fmt.Errorf("%w: got %q", ErrNoDigest, digest)
	}
	return nil
}

func wrongDigest(approved, got string) error {
	return fmt.Errorf("%w: approved is %s, the bytes are %s: look at what changed, then approve the new digest", ErrDigest, approved, got)
}

// fetch gives the module's bytes, which have the digest.
func (m *Module) fetch(digest string) ([]byte, error) {
	if m.Wasm != nil || m.Source == nil {
		return m.Wasm, nil
	}
	wasm, err := m.Source()
	if err != nil {
		return nil, err
	}
	if got := Digest(wasm); got != digest {
		return nil, wrongDigest(digest, got)
	}
	return wasm, nil
}

// source is a module on its way to the engine.
type source struct {
	digest string
	size   int    // of the original, in bytes
	doc    []byte // the original's own manifest; nil: it has none

	kept    *kept    // the cache entry; nil: there is none
	outline *outline // of kept
	// bare is the original without custom sections, checked; nil where kept is not.
	bare []byte
	// again gives bare, should kept turn out to be of no use.
	again func() ([]byte, error)
}

// source finds out what there is of a module: its cache entry, or its bytes. The
// sections are of either; those of an entry have no code, and the same manifest.
func (r *Runtime) source(ctx context.Context, m Module, digest string) (*source, []section, error) {
	src := &source{digest: digest}
	read := func() ([]section, error) {
		wasm, err := m.fetch(digest)
		if err != nil {
			return nil, err
		}
		if src.size = len(wasm); src.size > r.limits.ModuleBytes {
			return nil, tooLarge(src.size, r.limits.ModuleBytes)
		}
		return sections(wasm)
	}
	var secs []section
	if src.kept, src.outline = r.lookup(ctx, digest); src.kept == nil {
		var err error
		if secs, err = read(); err != nil {
			return nil, nil, err
		}
	} else {
		secs, src.size = src.outline.secs, src.outline.size
		if src.size > r.limits.ModuleBytes {
			return nil, nil, tooLarge(src.size, r.limits.ModuleBytes)
		}
	}
	doc, err := embedded(secs)
	src.doc = bytes.Clone(doc) // the bytes are not kept
	src.again = func() ([]byte, error) {
		secs, err := read()
		if err != nil {
			return nil, err
		}
		_, bare, err := examine(secs)
		return bare, err
	}
	return src, secs, err
}

// check looks at what a module imports and exports and, where it has no entry in
// the cache, counts what is in it.
func (src *source) check(secs []section) (*shape, error) {
	if src.kept != nil {
		sh, err := src.outline.shape()
		if err != nil {
			return nil, err
		}
		return sh, sh.checkABI()
	}
	sh, bare, err := examine(secs)
	src.bare = bare
	return sh, err
}

// examine checks a module before the engine sees it. bare is a copy without custom
// sections.
func examine(secs []section) (sh *shape, bare []byte, err error) {
	if sh, err = readShape(secs); err != nil {
		return nil, nil, err
	}
	if err := sh.checkABI(); err != nil {
		return nil, nil, err
	}
	if err := checkBounds(secs); err != nil {
		return nil, nil, err
	}
	return sh, withoutCustom(secs), nil
}

// lookup finds the cache entry of a metered module, which most are. With it a warm
// start needs nothing of the module itself. What the usual pass left there is not
// the work of a test's own.
func (r *Runtime) lookup(ctx context.Context, digest string) (*kept, *outline) {
	if r.disk == nil || r.rewrite != nil {
		return nil, nil
	}
	k, err := r.disk.entry(digest, true).verify()
	if k == nil && err == nil {
		return nil, nil
	}
	var o *outline
	if err == nil {
		o, err = readOutline(k.outline)
	}
	if err != nil {
		r.log.LogAttrs(ctx, levelWarn, "compilation cache entry is damaged; compiling again", attrDigest(digest), attrErr(err))
		return nil, nil
	}
	return k, o
}
