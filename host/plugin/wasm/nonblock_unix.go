//go:build unix

package wasm

import "syscall"

// nonblock keeps an open of a pipe from waiting for its other end.
const nonblock = syscall.O_NONBLOCK
