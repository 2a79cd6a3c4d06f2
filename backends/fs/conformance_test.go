package fs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
)

// harness opens handles onto one folder and damages what is stored in it.
type harness struct{ dir string }

func (h harness) Open(context.Context) (store.Store, error) { return fs.Open(fs.Config{Dir: h.dir}) }

func (h harness) Environment(context.Context) (conformance.Environment, error) {
	return conformance.Environment{Name: "a temporary folder", Values: map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH}}, nil
}

func (h harness) Floor(context.Context) (conformance.Floor, error) {
	return conformance.AppendFloor(h.dir)
}

// Damage changes one byte of the first entry that the commit of revision
// appended, where it stands in the record's journal.
func (h harness) Damage(ctx context.Context, key store.Key, revision uint64) error {
	data, err := h.entry(ctx, key, revision)
	if err != nil {
		return err
	}
	folder, err := h.folder(key)
	if err != nil {
		return err
	}
	journals, err := filepath.Glob(filepath.Join(folder, "journal-*.jsonl"))
	if err != nil {
		return err
	}
	for _, name := range journals {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if i := bytes.Index(b, data); i >= 0 {
			b[i+len(data)/2] ^= 1
			return os.WriteFile(name, b, 0o600)
		}
	}
	return fmt.Errorf("no journal in %s holds %q", folder, data)
}

// entry is the first entry that the commit of revision appended.
func (h harness) entry(ctx context.Context, key store.Key, revision uint64) ([]byte, error) {
	s, err := h.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	page, err := s.ReadLog(ctx, key, 1, 0)
	if err != nil {
		return nil, err
	}
	for _, e := range page.Entries {
		if e.Revision == revision {
			return e.Data, nil
		}
	}
	return nil, fmt.Errorf("no entry of revision %d", revision)
}

// folder finds the record of key by the id that stands in each record's folder.
func (h harness) folder(key store.Key) (string, error) {
	names, err := filepath.Glob(filepath.Join(h.dir, string(key.Kind), "*", "*", "id.json"))
	if err != nil {
		return "", err
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		var k store.Key
		if json.Unmarshal(b, &k) == nil && k == key {
			return filepath.Dir(name), nil
		}
	}
	return "", fmt.Errorf("no folder of %s", key)
}

func TestConformance(t *testing.T) { conformance.Run(t, harness{t.TempDir()}) }

func BenchmarkStore(b *testing.B) { conformance.Bench(b, harness{b.TempDir()}) }
