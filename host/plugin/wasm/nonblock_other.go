//go:build !unix

package wasm

// nonblock: there are no named pipes in folders here.
const nonblock = 0
