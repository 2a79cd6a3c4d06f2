package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
)

// A file of the engine's cache, as the versions below write one. Numbers are little
// endian.
//
//	"WAZEVO" │ n, 1 byte │ version, n bytes │ functions, 4 bytes │ their offsets, 8 bytes each
//	size of the machine code, 8 bytes │ machine code │ its CRC-32C, 4 bytes │ the rest
const engineMagic = "WAZEVO"

// engineVersions are those whose files are known. A program without module
// information, as a test is, calls itself "dev"; its engine is the one of go.mod.
var engineVersions = [...]string{"v1.12.0", "dev"}

// sumFile is the SHA-256 of a file of a cache entry, but for its machine code where
// it is one of the engine's: before it uses any, the engine compares the CRC-32C of
// all of it, which is in the hash like everything else. So the ten megabytes of a Go
// plugin are read once at a start, and not twice. Files of any other form, such as
// those of another version, are hashed whole.
func sumFile(f io.ReaderAt, size int64) ([]byte, error) {
	head, code, err := engineHead(f, size)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write(head)
	at := int64(len(head)) + code
	_, err = io.Copy(h, io.NewSectionReader(f, at, max(size, at)-at))
	return h.Sum(nil), err
}

// engineHead is what precedes the machine code in a file of the engine's, and the
// size of that code; both are empty where the file is none.
func engineHead(f io.ReaderAt, size int64) (head []byte, code int64, err error) {
	const longest = 16
	head = make([]byte, len(engineMagic)+1+longest+4)
	n, err := f.ReadAt(head, 0)
	if head = knownHead(head[:n]); head == nil {
		return nil, 0, notEOF(err)
	}
	functions := int64(binary.LittleEndian.Uint32(head[len(head)-4:]))
	const sum = 4
	end := int64(len(head)) + 8*functions + 8
	if end+sum > size {
		return nil, 0, nil
	}
	head = make([]byte, end)
	if n, err := f.ReadAt(head, 0); n < len(head) {
		return nil, 0, notEOF(err)
	}
	length := binary.LittleEndian.Uint64(head[end-8:])
	if length > uint64(size-end-sum) {
		return nil, 0, nil
	}
	return head, int64(length), nil
}

// knownHead is b up to and with the number of functions, of a version that is known.
func knownHead(b []byte) []byte {
	for _, version := range engineVersions {
		start := engineMagic + string(byte(len(version))) + version
		if end := len(start) + 4; len(b) >= end && string(b[:len(start)]) == start {
			return b[:end]
		}
	}
	return nil
}

// notEOF drops the error of a file that is shorter than it was said to be: its hash
// will tell.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
