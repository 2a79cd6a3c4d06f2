//go:build linux || darwin

package fs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/conformance"
)

// ownerFolder is the environment variable that makes a test process an owner: it
// names the folder of the store.
const ownerFolder = "FS_TEST_OWNER_FOLDER"

var _ conformance.Spawner = harness{}

// SpawnOwner runs this test binary again as an owner.
func (h harness) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, "-test.run=^TestOwnerInAProcessOfItsOwn$")
	cmd.Env = append(os.Environ(), ownerFolder+"="+h.dir)
	return conformance.StartOwner(cmd)
}

// TestOwnerInAProcessOfItsOwn is the owner when the suite runs it, and otherwise
// checks that one can be run: it halts where its provider is called.
func TestOwnerInAProcessOfItsOwn(t *testing.T) {
	if dir := os.Getenv(ownerFolder); dir != "" {
		serveOwner(t, dir)
		return
	}
	p, err := harness{t.TempDir()}.SpawnOwner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(p, `{"session":"a session"}`); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(p)
	for _, want := range []string{"calls", "boundary"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		if _, err := fmt.Fprintln(p, "go"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got, `"complete":1`) {
		t.Errorf("got %q, %v; want an end with one Complete event", got, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func serveOwner(t *testing.T, dir string) {
	s, err := fs.Open(fs.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conformance.ServeStartedOwner(t.Context(), s), s.Close()); err != nil {
		t.Fatal(err)
	}
}
