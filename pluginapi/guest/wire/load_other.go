//go:build !(386 || amd64 || arm64 || wasm)

package wire

// load is the eight bytes of s at i, which are there, the first one lowest.
func load(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// store writes w to b at i, where there is room for it.
func store(b []byte, i int, w uint64) {
	for k, c := range [8]byte{byte(w), byte(w >> 8), byte(w >> 16), byte(w >> 24), byte(w >> 32), byte(w >> 40), byte(w >> 48), byte(w >> 56)} {
		b[i+k] = c
	}
}
