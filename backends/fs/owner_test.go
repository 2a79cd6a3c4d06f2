//go:build linux || darwin

package fs

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/loophost/loophost/conformance"
)

// OwnerFolder is the environment variable that makes a test process an owner: it
// names the folder of the store.
const OwnerFolder = "FS_TEST_OWNER_FOLDER"

// serveOwner serves as an owner where this is such a process.
func serveOwner() bool {
	dir := os.Getenv(OwnerFolder)
	if dir == "" {
		return false
	}
	s, err := Open(Config{Dir: dir})
	if err == nil {
		err = errors.Join(conformance.ServeStartedOwner(context.Background(), s), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
