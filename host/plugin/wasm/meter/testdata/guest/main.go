// Command guest is what the tests of package meter run plain and metered: a
// plugin-like WASI reactor. Every export returns a checksum of what it did.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"sort"
	"strings"
	"time"
)

type message struct {
	Role    string            `json:"role"`
	Content string            `json:"content"`
	Tags    map[string]string `json:"tags"`
	Calls   []call            `json:"calls"`
}

type call struct {
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"args"`
	Cost  float64         `json:"cost"`
	Retry bool            `json:"retry"`
}

func document() []byte {
	m := message{Role: "assistant", Content: strings.Repeat("the quick brown fox \"jumps\" ", 12), Tags: map[string]string{"a": "1", "b": "2"}}
	for range 6 {
		m.Calls = append(m.Calls, call{"read_file", json.RawMessage(`{"path":"a/b/c.txt","from":1,"to":250}`), 0.25, true})
	}
	doc, _ := json.Marshal(m)
	return doc
}

//go:wasmexport json_round_trips
func jsonRoundTrips(n int32) uint32 {
	doc := document()
	var sum uint32
	for range n {
		var m message
		if err := json.Unmarshal(doc, &m); err != nil {
			return 0
		}
		out, err := json.Marshal(m)
		if err != nil {
			return 0
		}
		sum = crc32.Update(sum, crc32.IEEETable, out)
	}
	return sum
}

//go:wasmexport hashes
func hashes(n int32) uint32 {
	var block [1024]byte
	for i := range n {
		binary.LittleEndian.PutUint32(block[:], uint32(i))
		sum := sha256.Sum256(block[:])
		copy(block[32:], sum[:])
	}
	return binary.LittleEndian.Uint32(block[32:])
}

//go:wasmexport sorts
func sorts(n int32) uint32 {
	var sum uint32
	for range n {
		words := strings.Fields(strings.Repeat("delta alpha charlie bravo ", 64))
		sort.Strings(words)
		sum = crc32.Update(sum, crc32.IEEETable, bytes.Join([][]byte{[]byte(words[0]), []byte(words[200])}, nil))
	}
	return sum
}

//go:wasmexport recovers
func recovers(n int32) (out uint32) {
	defer func() {
		if recover() != nil {
			out = 7
		}
	}()
	var a [4]int
	return uint32(a[n])
}

//go:wasmexport spin
func spin() {
	for i := 0; ; i++ {
		if i < 0 {
			println(time.Now().String())
		}
	}
}

func main() {}
