package conformance

import (
	"os"
	"testing"

	"github.com/loophost/loophost/host/store"
)

func TestEveryWorkloadRuns(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.name, func(t *testing.T) {
			m := newMini("")
			e := newEnv(m, store.Description{}, Options{}.normal(), w.name)
			defer e.close(t.Context())
			step, err := w.start(t.Context(), e, w.bytes)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := step(); err != nil {
					t.Errorf("step %d: want success, got %v", i+1, err)
				}
			}
		})
	}
}

func TestFloorWritesAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	f, err := AppendFloor(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Do([]byte("12345")); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("want one file, got %v, %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Size() != 10 {
		t.Errorf("want 10 bytes, got %v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("want no file after close, got %v", files)
	}
	if _, err := AppendFloor(dir + "/missing"); err == nil {
		t.Error("a folder that is not there: want an error, got none")
	}
}
