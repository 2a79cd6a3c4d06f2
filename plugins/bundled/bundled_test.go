package bundled

import (
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/plugin/wasm"
)

func TestEveryModuleUnpacksToItsDigest(t *testing.T) {
	want := []string{"redact", "scripted", "stop-when", "tool-guard", "workspace"}
	if got := Names(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for _, name := range want {
		module, err := Module(name)
		if err != nil || !bytes.HasPrefix(module, []byte("\x00asm\x01\x00\x00\x00")) {
			t.Errorf("%s: %d bytes, %v", name, len(module), err)
		}
		// The manifest beside a module is used without looking into the module.
		inside, err := wasm.ReadManifest(module, nil)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Manifest(name)
		if err != nil {
			t.Fatal(err)
		}
		beside, err := plugin.ParseManifest(doc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(inside, beside); diff != "" {
			t.Errorf("%s: the manifest beside the module differs (-inside +beside):\n%s", name, diff)
		}
		if digest, err := Digest(name); err != nil || len(digest) != len("sha256:")+64 {
			t.Errorf("%s: digest %q, %v", name, digest, err)
		}
	}
}

func TestAnUnknownNameListsTheKnownOnes(t *testing.T) {
	const want = `no such bundled plugin: "demo"; there are redact, scripted, stop-when, tool-guard, workspace`
	if _, err := Module("demo"); !errors.Is(err, ErrUnknown) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Manifest("../SHA256SUMS"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if _, err := Digest("../SHA256SUMS"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

func TestDamageIsFound(t *testing.T) {
	e, err := find("scripted")
	if err != nil {
		t.Fatal(err)
	}
	good, err := files.ReadFile("scripted.wasm.gz")
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	z := gzip.NewWriter(&other)
	if _, err := z.Write([]byte("another module")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{
		"nothing": nil, "cut short": good[:len(good)/2], "other bytes": other.Bytes(), "not gzip": []byte("scripted"),
	} {
		if _, err := unpack(e, packed); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", name, err)
		}
	}
	if _, err := unpack(e, good); err != nil {
		t.Errorf("undamaged: %v", err)
	}
}
