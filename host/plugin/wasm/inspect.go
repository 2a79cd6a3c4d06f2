package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
	"github.com/loophost/loophost/pluginapi"
)

// Inspection is what can be told about a module without running any of it.
type Inspection struct {
	Digest  string   `json:"digest"` // "sha256:" and hex
	Bytes   int      `json:"bytes"`
	Imports []Symbol `json:"imports"`
	Exports []Symbol `json:"exports"`
	// MemoryMin and MemoryMax are pages of 64 KiB; MemoryMax 0: the module names no maximum.
	MemoryMin uint64          `json:"memory_min"`
	MemoryMax uint64          `json:"memory_max,omitempty"`
	Custom    []CustomSection `json:"custom_sections,omitempty"`
	// Manifest is the embedded one; nil: none, or not valid (see Problems).
	Manifest *pluginapi.Manifest `json:"manifest,omitempty"`
	// Metered says that fuel metering bounds its time; otherwise closing on context end does.
	Metered bool `json:"metered"`
	// Problems say why this host would refuse the module; empty: nothing was found.
	Problems []string `json:"problems,omitempty"`
}

// CustomSection is a custom section's name and size in bytes.
type CustomSection struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// Digest is "sha256:" and the hex SHA-256 of a module's bytes, as people approve it.
func Digest(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Inspect reads a module. It compiles, instantiates and runs nothing. It fails on
// bytes that aren't a module; what a host would refuse for other reasons is in
// Problems.
func Inspect(wasm []byte) (*Inspection, error) {
	secs, err := sections(wasm)
	if err != nil {
		return nil, err
	}
	sh, err := readShape(secs)
	if err != nil {
		return nil, err
	}
	in := &Inspection{
		Digest: Digest(wasm), Bytes: len(wasm), Imports: sh.imports, Exports: sh.exports,
		MemoryMin: sh.memMin, MemoryMax: sh.memMax,
	}
	for _, s := range secs {
		if s.id == secCustom {
			in.Custom = append(in.Custom, CustomSection{Name: s.name, Bytes: len(s.body)})
		}
	}
	problem := func(err error) {
		if err != nil {
			in.Problems = append(in.Problems, err.Error())
		}
	}
	if m, err := manifestOf(secs, nil); err == nil {
		in.Manifest = &m
	} else if !errors.Is(err, ErrNoManifest) { // it may lie beside the module
		problem(err)
	}
	if len(wasm) > pluginapi.MaxModuleBytes {
		problem(tooLarge(len(wasm), pluginapi.MaxModuleBytes))
	}
	problem(sh.checkABI())
	problem(checkBounds(secs))
	_, err = meter.Rewrite(wasm, meter.Options{})
	in.Metered = err == nil
	if errors.Is(err, meter.ErrMalformed) || errors.Is(err, meter.ErrReserved) {
		problem(err)
	}
	return in, nil
}
