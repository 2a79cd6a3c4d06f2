//go:build !unix

package verifier

import "os/exec"

// Without process groups only the command itself is killed.
func ownGroup(*exec.Cmd) {}
