//go:build linux || darwin

package fs_test

import (
	"context"
	"os"
	"os/exec"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/conformance"
)

var _ conformance.Spawner = harness{}

// SpawnOwner runs this test binary again as an owner.
func (h harness) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fs.OwnerFolder+"="+h.dir)
	return conformance.StartOwner(cmd)
}
