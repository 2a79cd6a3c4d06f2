package wasm

import (
	"testing"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
	"github.com/loophost/loophost/pluginapi"
)

// tiny is a module written by hand: whatever a toolchain would not build.
type tiny struct {
	imports  []tinyImport
	pages    byte   // of memory, at first
	most     uint32 // pages; 0: no maximum
	call     []byte // body of lh1_call (op, in_len) -> i32, without its end
	init     []byte // body of _initialize; nil: none
	start    []byte // body of the start function; nil: none
	name     string // of the call's export; "": lh1_call
	noMem    bool   // the memory is not exported
	extra    []byte // a section before the code, whole
	after    []byte // a section behind the code, whole
	plain    bool   // to be loaded by a host whose meter refuses it
	table    bool   // a table of funcref that can grow
	entries  uint32 // of the table, at first
	many     int    // functions more, without parameters and results
	manyBody []byte // of each, with declared locals and end
}

type tinyImport struct {
	module, name string
	params       int
	result       bool
}

// The functions of lh1, in an order that gives each a number.
var lh1Imports = []tinyImport{
	{"lh1", "input_read", 3, true},
	{"lh1", "output_write", 2, false},
	{"lh1", "error_write", 2, false},
	{"lh1", "log", 3, false},
	{"lh1", "host_call", 3, true},
	{"lh1", "reply_read", 3, true},
	{"lh1", "deadline_ms", 0, true},
}

const (
	fnInputRead = iota
	fnOutputWrite
	fnErrorWrite
	fnLog
	fnHostCall
	fnReplyRead
	fnDeadline
	fnSelf // lh1_call itself
)

// Instructions.
func ic(v int32) []byte {
	out := []byte{0x41}
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && b&0x40 == 0) || (v == -1 && b&0x40 != 0) {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func callFn(n int) []byte     { return appendU32([]byte{0x10}, uint32(n)) }
func drop() []byte            { return []byte{0x1a} }
func get(n byte) []byte       { return []byte{0x20, n} }
func forever(b []byte) []byte { return join([]byte{0x03, 0x40}, b, []byte{0x0c, 0, 0x0b}) }
func unreachable() []byte     { return []byte{0x00} }
func growMemory() []byte      { return []byte{0x40, 0x00} }
func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func vec(items [][]byte) []byte { return append(appendU32(nil, uint32(len(items))), join(items...)...) }
func str(s string) []byte       { return append(appendU32(nil, uint32(len(s))), s...) }
func sec(id byte, body []byte) []byte {
	return append(appendU32([]byte{id}, uint32(len(body))), body...)
}

func funcType(params int, result bool) []byte {
	out := append([]byte{0x60, byte(params)}, make([]byte, params)...)
	for i := range params {
		out[2+i] = 0x7f
	}
	if result {
		return append(out, 1, 0x7f)
	}
	return append(out, 0)
}

// wasm assembles. Every function has a type of its own.
func (m tiny) wasm() []byte {
	if m.imports == nil {
		m.imports = lh1Imports
	}
	if m.pages == 0 {
		m.pages = 1
	}
	if m.name == "" {
		m.name = pluginapi.ExportCall
	}
	var types, imports, funcs, exports, code [][]byte
	for i, im := range m.imports {
		types = append(types, funcType(im.params, im.result))
		imports = append(imports, join(str(im.module), str(im.name), []byte{0}, appendU32(nil, uint32(i))))
	}
	add := func(params int, result bool, body []byte) uint32 {
		n := uint32(len(types))
		types = append(types, funcType(params, result))
		funcs = append(funcs, appendU32(nil, n))
		code = append(code, str(string(join([]byte{0}, body, []byte{0x0b}))))
		return n
	}
	n := add(2, true, m.call)
	exports = append(exports, join(str(m.name), []byte{0}, appendU32(nil, n)))
	if !m.noMem {
		exports = append(exports, join(str("memory"), []byte{2, 0}))
	}
	if m.init != nil {
		n := add(0, false, m.init)
		exports = append(exports, join(str("_initialize"), []byte{0}, appendU32(nil, n)))
	}
	var start []byte
	if m.start != nil {
		start = sec(8, appendU32(nil, add(0, false, m.start)))
	}
	memory := []byte{0, m.pages}
	if m.most > 0 {
		memory = appendU32([]byte{1, m.pages}, m.most)
	}
	var table []byte
	if m.table {
		table = sec(4, appendU32([]byte{1, 0x70, 0}, m.entries))
	}
	if m.many > 0 {
		n := uint32(len(types))
		types = append(types, funcType(0, false))
		for range m.many {
			funcs = append(funcs, appendU32(nil, n))
			code = append(code, str(string(m.manyBody)))
		}
	}
	return join(preamble, sec(1, vec(types)), sec(2, vec(imports)), sec(3, vec(funcs)), table,
		sec(5, append([]byte{1}, memory...)), sec(7, vec(exports)), start, m.extra, sec(10, vec(code)), m.after)
}

// refuseToMeter makes a host fall back to closing on context end.
func refuseToMeter([]byte, meter.Options) ([]byte, error) {
	return nil, &meter.Error{Kind: meter.ErrUnsupported, Opcode: -1, Detail: "a test wants it so"}
}

// loadTiny loads a hand-made module.
func loadTiny(t testing.TB, m tiny, cfg Config, grants Grants, change func(*pluginapi.Manifest)) (*Plugin, error) {
	t.Helper()
	man := manifest()
	if change != nil {
		change(&man)
	}
	r := newRuntime(t, cfg)
	if m.plain {
		r.rewrite = refuseToMeter
	}
	return r.Load(t.Context(), Module{Wasm: m.wasm(), SidecarManifest: encode(t, man), Grants: grants})
}

// swapImport is lh1Imports with another function at i.
func swapImport(i int, im tinyImport) []tinyImport {
	out := append([]tinyImport(nil), lh1Imports...)
	out[i] = im
	return out
}
