//go:build linux || darwin

package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/loophost/loophost/conformance"
)

// ownerURL is the environment variable that makes a test process an owner: it names
// the store.
const ownerURL = "REDIS_TEST_OWNER_URL"

var _ conformance.Spawner = harness{}

// SpawnOwner runs this test binary again as an owner.
func (h harness) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), ownerURL+"="+h.url)
	return conformance.StartOwner(cmd)
}

// serveOwner serves as an owner where this is such a process.
func serveOwner() bool {
	url := os.Getenv(ownerURL)
	if url == "" {
		return false
	}
	s, err := Open(context.Background(), Config{URL: url})
	if err == nil {
		err = errors.Join(conformance.ServeStartedOwner(context.Background(), s), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
