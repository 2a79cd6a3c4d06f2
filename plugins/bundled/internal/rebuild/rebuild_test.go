package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheBundledModulesAreWhatTheirSourceBuilds(t *testing.T) {
	if err := run(true); err != nil {
		t.Fatal(err)
	}
}

func TestCompareNamesEveryDifference(t *testing.T) {
	built := files{"a.wasm.gz": []byte("a"), "a.json": []byte("{}"), "b.wasm.gz": []byte("b"), "SHA256SUMS": []byte("s")}
	dir := t.TempDir()
	for name, content := range map[string]string{"a.wasm.gz": "a", "b.wasm.gz": "x", "old.wasm.gz": "o", "old.json": "o", "bundled.go": "package"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := built.compare(dir)
	const want = "old.json belongs to no plugin\nold.wasm.gz belongs to no plugin\nSHA256SUMS is missing\na.json is missing\nb.wasm.gz is not what its source builds\nrun go generate"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s …", err, want)
	}
	if err := built.write(dir); err != nil {
		t.Fatal(err)
	}
	if err := built.compare(dir); err != nil {
		t.Errorf("after a write: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "bundled.go")); err != nil || string(b) != "package" {
		t.Errorf("a file of another kind: %q, %v", b, err)
	}
}

func TestPackingIsReproducible(t *testing.T) {
	module := []byte(strings.Repeat("module ", 1000))
	a, err := pack(module)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pack(module)
	if err != nil || string(a) != string(b) {
		t.Errorf("two packings differ (%v)", err)
	}
	var fast bytes.Buffer
	z, err := gzip.NewWriterLevel(&fast, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(module); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if !same(a, fast.Bytes()) || same(a, module) || same(a, nil) {
		t.Error("the same module packed otherwise is the same; anything else is not")
	}
}
