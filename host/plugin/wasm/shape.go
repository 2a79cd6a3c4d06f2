package wasm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loophost/loophost/pluginapi"
)

// External kinds of imports and exports.
const (
	extFunc   = "func"
	extTable  = "table"
	extMemory = "memory"
	extGlobal = "global"
	extTag    = "tag"
)

var extKinds = []string{extFunc, extTable, extMemory, extGlobal, extTag}

// Symbol is an import or an export.
type Symbol struct {
	Module string `json:"module,omitempty"` // of an import
	Name   string `json:"name"`
	Kind   string `json:"kind"`           // func, table, memory, global, tag
	Type   string `json:"type,omitempty"` // of a function, as "(i32,i32)->(i32)"
}

// shape is what a module shows to the outside.
type shape struct {
	imports, exports []Symbol
	memories         int    // defined and imported
	memMin           uint64 // pages
	memMax           uint64 // pages; meaningless without hasMax
	hasMax           bool
	types            []string
	funcs            []uint32 // type indexes, imported functions first
}

// readShape reads types, imports, functions, memories and exports.
func readShape(secs []section) (*shape, error) {
	s := &shape{}
	for _, sec := range secs {
		r := &reader{b: sec.body}
		var what string
		switch sec.id {
		case secType:
			what = "type"
			s.readTypes(r)
		case secImport:
			what = "import"
			s.readImports(r)
		case secFunction:
			what = "function"
			for n := r.count(); n > 0 && r.err == nil; n-- {
				s.funcs = append(s.funcs, r.u32())
			}
		case secMemory:
			what = "memory"
			for n := r.count(); n > 0 && r.err == nil; n-- {
				s.memory(r)
			}
		case secExport:
			what = "export"
			s.readExports(r)
		default:
			continue
		}
		if r.err != nil {
			return nil, fmt.Errorf("%s section: %w", what, r.err)
		}
		if r.off != len(r.b) {
			return nil, fmt.Errorf("%s section: %d bytes left over", what, len(r.b)-r.off)
		}
	}
	return s, nil
}

func (s *shape) readTypes(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != 0x60 && r.err == nil {
			r.fail(fmt.Errorf("a type of form 0x%02x: only function types are supported", form))
			return
		}
		params := valueTypes(r)
		results := valueTypes(r)
		s.types = append(s.types, "("+params+")->("+results+")")
	}
}

func valueTypes(r *reader) string {
	names := map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128", 0x70: "funcref", 0x6f: "externref"}
	var b strings.Builder
	for n := r.count(); n > 0 && r.err == nil; n-- {
		name, ok := names[r.byte()]
		if !ok {
			r.fail(errors.New("an unknown value type"))
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
	}
	return b.String()
}

// memory reads a memory type.
func (s *shape) memory(r *reader) {
	s.memories++
	flags := r.byte()
	if flags > 7 {
		r.fail(fmt.Errorf("memory with flags 0x%02x", flags))
	}
	s.memMin = r.u64()
	if s.hasMax = flags&1 != 0; s.hasMax {
		s.memMax = r.u64()
	}
}

func (s *shape) readImports(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		sym := Symbol{Module: r.name(), Name: r.name()}
		kind := r.byte()
		if int(kind) >= len(extKinds) {
			r.fail(fmt.Errorf("an import of kind %d", kind))
			return
		}
		sym.Kind = extKinds[kind]
		switch sym.Kind {
		case extFunc:
			t := r.u32()
			s.funcs = append(s.funcs, t)
			sym.Type = s.typeOf(r, t)
		case extTable:
			r.byte() // element type
			flags := r.byte()
			r.u64() // least
			if flags&1 != 0 {
				r.u64() // most
			}
		case extMemory:
			s.memory(r)
		case extGlobal:
			r.take(2)
		case extTag:
			r.byte()
			r.u32()
		}
		s.imports = append(s.imports, sym)
	}
}

func (s *shape) readExports(r *reader) {
	seen := map[string]bool{}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		sym := Symbol{Name: r.name()}
		kind, index := r.byte(), r.u32()
		if int(kind) >= len(extKinds) {
			r.fail(fmt.Errorf("an export of kind %d", kind))
			return
		}
		if seen[sym.Name] {
			r.fail(fmt.Errorf("%q is exported twice", sym.Name))
			return
		}
		seen[sym.Name] = true
		if sym.Kind = extKinds[kind]; sym.Kind == extFunc {
			if uint64(index) >= uint64(len(s.funcs)) {
				r.fail(fmt.Errorf("export %q names function %d of %d", sym.Name, index, len(s.funcs)))
				return
			}
			sym.Type = s.typeOf(r, s.funcs[index])
		}
		s.exports = append(s.exports, sym)
	}
}

func (s *shape) typeOf(r *reader, t uint32) string {
	if uint64(t) >= uint64(len(s.types)) {
		r.fail(fmt.Errorf("function type %d of %d", t, len(s.types)))
		return ""
	}
	return s.types[t]
}

const wasiModule = "wasi_snapshot_preview1"

// lh1Types are the signatures of the host module's functions.
func lh1Types() map[string]string {
	return map[string]string{
		pluginapi.ImportInputRead:   "(i32,i32,i32)->(i32)",
		pluginapi.ImportOutputWrite: "(i32,i32)->()",
		pluginapi.ImportErrorWrite:  "(i32,i32)->()",
		pluginapi.ImportLog:         "(i32,i32,i32)->()",
		pluginapi.ImportHostCall:    "(i32,i32,i32)->(i32)",
		pluginapi.ImportReplyRead:   "(i32,i32,i32)->(i32)",
		pluginapi.ImportDeadline:    "()->(i32)",
	}
}

// checkABI tells whether a module speaks this host's ABI.
func (s *shape) checkABI() error {
	known := lh1Types()
	for _, im := range s.imports {
		at := im.Module + "." + im.Name
		switch {
		case im.Kind != extFunc:
			return fmt.Errorf("it imports the %s %s; only functions can be imported", im.Kind, at)
		case im.Module == pluginapi.ImportModule:
			want, ok := known[im.Name]
			if !ok {
				return fmt.Errorf("it imports %s, which this host does not offer", at)
			}
			if im.Type != want {
				return fmt.Errorf("it imports %s as %s; the function is %s", at, im.Type, want)
			}
		case im.Module == wasiModule: // its names are checked when it is linked
		case strings.HasPrefix(im.Module, "lh") && len(im.Module) <= 4:
			return fmt.Errorf("it imports %s; this host speaks ABI version %d (module %s): build the plugin for that", at, pluginapi.ABIMajor, pluginapi.ImportModule)
		default:
			return fmt.Errorf("it imports %s; only %s and %s are offered: build it as a WASI reactor without other imports", at, pluginapi.ImportModule, wasiModule)
		}
	}
	want := map[string]Symbol{
		pluginapi.ExportCall:       {Kind: extFunc, Type: "(i32,i32)->(i32)"},
		pluginapi.ExportMemory:     {Kind: extMemory},
		pluginapi.ExportInitialize: {Kind: extFunc, Type: "()->()"},
	}
	found := map[string]bool{}
	other := ""
	for _, ex := range s.exports {
		if w, ok := want[ex.Name]; ok {
			if ex.Kind != w.Kind || ex.Type != w.Type {
				return fmt.Errorf("it exports %s as %s %s; wanted is %s %s", ex.Name, ex.Kind, ex.Type, w.Kind, w.Type)
			}
			found[ex.Name] = true
		} else if strings.HasPrefix(ex.Name, "lh") && strings.HasSuffix(ex.Name, "_call") {
			other = ex.Name
		}
	}
	switch {
	case !found[pluginapi.ExportCall] && other != "":
		return fmt.Errorf("it exports %s, this host calls %s (ABI version %d): build the plugin for that version", other, pluginapi.ExportCall, pluginapi.ABIMajor)
	case !found[pluginapi.ExportCall]:
		return fmt.Errorf("it does not export %s(op, in_len i32) -> i32", pluginapi.ExportCall)
	case !found[pluginapi.ExportMemory]:
		return fmt.Errorf("it does not export its memory as %q", pluginapi.ExportMemory)
	case s.memories != 1:
		return fmt.Errorf("it has %d memories; exactly one is supported", s.memories)
	}
	return nil
}
