package wasm

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// counting counts the bytes that are read.
type counting struct {
	*os.File
	read int64
}

func (c *counting) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.File.ReadAt(b, off)
	c.read += int64(n)
	return n, err
}

// TestMachineCodeIsLeftToTheEngine: reading it for a hash of our own as well took a
// tenth of a cold start. After an update of the engine, see what its files look like
// now, and what its own checksum covers.
func TestMachineCodeIsLeftToTheEngine(t *testing.T) {
	module := goGuest(t)
	dir := cold(t, Module{Wasm: module, SidecarManifest: encode(t, manifest())})
	entry := (&diskCache{root: dir}).entry(Digest(module), true).dir
	code, err := machineCode(entry)
	check(t, err)
	f, err := os.Open(filepath.Join(entry, code))
	check(t, err)
	defer f.Close()
	st, err := f.Stat()
	check(t, err)
	c := &counting{File: f}
	_, err = sumFile(c, st.Size())
	check(t, err)
	if c.read > st.Size()/20 {
		t.Errorf("%d of %d bytes were read", c.read, st.Size())
	}
}

// TestEveryDamagedByteIsFound: by our checksums or by the engine's.
func TestEveryDamagedByteIsFound(t *testing.T) {
	module := tiny{call: answer204()}.wasm()
	dir := cold(t, Module{Wasm: module, SidecarManifest: encode(t, manifest())})
	r := newRuntime(t, Config{CacheDir: dir})
	entry := r.disk.entry(Digest(module), true)
	taken := func() bool {
		k, err := entry.verify()
		if k == nil || err != nil {
			return false
		}
		o, err := readOutline(k.outline)
		check(t, err)
		c := &compiled{}
		err = r.buildKept(context.Background(), c, &source{kept: k, outline: o})
		c.free()
		return err == nil
	}
	if !taken() {
		t.Fatal("the whole entry is not taken")
	}
	files := 0
	check(t, eachFile(entry.dir, func(rel string) error {
		files++
		path := filepath.Join(entry.dir, rel)
		whole, err := os.ReadFile(path)
		check(t, err)
		for i := range whole {
			broken := bytes.Clone(whole)
			broken[i] ^= 1 << (i % 8)
			check(t, os.WriteFile(path, broken, 0o600))
			if taken() {
				t.Errorf("%s: a flipped bit in byte %d of %d is not found", rel, i, len(whole))
			}
		}
		for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			check(t, os.WriteFile(path, whole[:n], 0o600))
			if taken() {
				t.Errorf("%s: cut to %d of %d bytes, and not found", rel, n, len(whole))
			}
		}
		check(t, os.WriteFile(path, append(bytes.Clone(whole), 0), 0o600))
		if taken() {
			t.Errorf("%s: a byte more is not found", rel)
		}
		return os.WriteFile(path, whole, 0o600)
	}))
	if files != 2 {
		t.Errorf("got %d files, want the outline and the machine code", files)
	}
}

// FuzzEngineHead: no bytes make the part that isn't hashed reach beyond the file,
// and all others count.
func FuzzEngineHead(f *testing.F) {
	f.Add([]byte(nil))
	const head = engineMagic + "\x03dev"
	f.Add([]byte(head + "\x01\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" + "abc" + "sum4" + "\x00\x00\x00\x00\x00"))
	f.Add([]byte(head + "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte(head + "\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff" + "more"))
	f.Fuzz(func(t *testing.T, b []byte) {
		head, code, err := engineHead(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if code < 0 || code > 0 && int64(len(head))+code+4 > int64(len(b)) || !bytes.HasPrefix(b, head) {
			t.Fatalf("a head of %d and a code of %d bytes in %d", len(head), code, len(b))
		}
		want, err := sumFile(bytes.NewReader(b), int64(len(b)))
		check(t, err)
		for i := range b {
			if n := int64(len(head)); int64(i) >= n && int64(i) < n+code {
				continue
			}
			b[i] ^= 0x10
			got, err := sumFile(bytes.NewReader(b), int64(len(b)))
			check(t, err)
			if bytes.Equal(got, want) {
				t.Errorf("byte %d does not count", i)
			}
			b[i] ^= 0x10
		}
	})
}
