//go:build 386 || amd64 || arm64 || wasm

package wire

import "unsafe"

// load is the eight bytes of s at i, which are there, the first one lowest. These
// machines load so from any address; a guest's compiler does not put eight loads of a
// byte together.
func load(s string, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}

// store writes w to b at i, where there is room for it.
func store(b []byte, i int, w uint64) {
	*(*uint64)(unsafe.Pointer(&b[i : i+8][0])) = w
}
