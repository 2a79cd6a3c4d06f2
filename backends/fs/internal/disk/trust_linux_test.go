package disk

import (
	"os"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/store"
)

func TestFilesystemTypes(t *testing.T) {
	for _, c := range []struct {
		name   string
		number uint32
		want   Medium
	}{
		{"ext4 keeps flushed data", 0xef53, Medium{Type: "ext4", Level: store.LevelPower, Known: true}},
		{"tmpfs lives in memory", 0x01021994, Medium{Type: "tmpfs", Level: store.LevelProcess, Known: true}},
		{"nfs is not trusted", 0x6969, Medium{Type: "nfs", Known: true}},
		{"fuse is not trusted", 0x65735546, Medium{Type: "fuse", Known: true}},
		{"cifs is not trusted", 0xff534d42, Medium{Type: "cifs", Known: true}},
		{"an unknown type is named by its number", 0x1234, Medium{Type: "type 0x1234"}},
	} {
		if got := mediumOf(c.number); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTwoDescriptionsExcludeEachOther(t *testing.T) {
	path := t.TempDir() + "/lock"
	a, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	b, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if ok, err := TryLock(a); !ok || err != nil {
		t.Fatalf("the first lock: got %v, %v, want it", ok, err)
	}
	if ok, err := TryLock(b); ok || err != nil {
		t.Errorf("the second lock: got %v, %v, want none", ok, err)
	}
	if held, err := Locked(b); !held || err != nil {
		t.Errorf("asked while it is held: got %v, %v, want held", held, err)
	}
	if err := Unlock(a); err != nil {
		t.Fatal(err)
	}
	if held, err := Locked(b); held || err != nil {
		t.Errorf("asked after it was given back: got %v, %v, want free", held, err)
	}
	if ok, err := TryLock(a); !ok || err != nil {
		t.Errorf("a lock after it was asked for: got %v, %v, want it", ok, err)
	}
}

func TestAnAtomicWriteLeavesNothingUnfinished(t *testing.T) {
	root, err := OpenDir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, text := range []string{"one", "two"} {
		if err := root.WriteAtomic("file", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := root.ReadFile("file"); err != nil || string(b) != text {
			t.Errorf("got %q, %v, want %q", b, err, text)
		}
	}
	if err := root.Mkdir("folder"); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteAtomic("folder", nil); err == nil {
		t.Error("a file over a folder: got no error, want one")
	}
	entries, err := os.ReadDir(root.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}
