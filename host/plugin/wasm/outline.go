package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/plugin/wasm/meter"
	"github.com/loophost/loophost/pluginapi"
)

// An outline is a metered module in which every function's body is one trap, so
// that reading and validating it costs next to nothing. The engine needs no more of
// a module whose machine code lies in the cache. Two custom sections at its end
// carry what else a warm start needs of the original:
//
//	types … exports │ bodies that trap │ data ║ loophost.original │ loophost.manifest
//	└──────────── for the engine ─────────────┘  its size in bytes   as it was, if any

// originalSection holds the size of the original module, as a uvarint.
const originalSection = "loophost.original"

// trapping is a function body with its size: no locals, unreachable, end.
var trapping = [...]byte{3, 0, 0x00, 0x0b}

// outlineOf makes the outline of a metered module. size is that of the original,
// manifest the content of its manifest section; nil: it has none.
func outlineOf(metered []byte, size int, manifest []byte) ([]byte, error) {
	secs, err := sections(metered)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(metered)/2), preamble...)
	for _, s := range secs {
		switch s.id {
		case secCustom:
		case secCode:
			r := &reader{b: s.body}
			n := r.count()
			if r.err != nil {
				return nil, fmt.Errorf("code section: %w", r.err)
			}
			body := appendU32(make([]byte, 0, 5+n*len(trapping)), uint32(n))
			for range n {
				body = append(body, trapping[:]...)
			}
			out = appendU32(append(out, secCode), uint32(len(body)))
			out = append(out, body...)
		default:
			out = append(out, s.raw...)
		}
	}
	out = appendCustom(out, originalSection, binary.AppendUvarint(nil, uint64(size)))
	if manifest != nil {
		out = appendCustom(out, pluginapi.ManifestSection, manifest)
	}
	return out, nil
}

// appendCustom appends a custom section.
func appendCustom(out []byte, name string, content []byte) []byte {
	body := append(appendU32(nil, uint32(len(name))), name...)
	out = appendU32(append(out, secCustom), uint32(len(body)+len(content)))
	return append(append(out, body...), content...)
}

// outline is an outline that was read.
type outline struct {
	secs []section
	code []byte // what the engine gets: all but the custom sections
	size int    // of the original, in bytes
}

// readOutline undoes outlineOf. It keeps the bytes.
func readOutline(module []byte) (*outline, error) {
	secs, err := sections(module)
	if err != nil {
		return nil, err
	}
	o := &outline{secs: secs}
	end := len(preamble)
	for _, s := range secs {
		switch {
		case s.id != secCustom && o.code != nil:
			return nil, errors.New("an outline with a section behind its custom ones")
		case s.id != secCustom:
			end += len(s.raw)
			continue
		case o.code == nil:
			o.code = module[:end:end]
		}
		if s.name == originalSection {
			size, n := binary.Uvarint(s.body)
			if n != len(s.body) || size == 0 || size > 1<<31-1 {
				return nil, fmt.Errorf("section %s is damaged", originalSection)
			}
			o.size = int(size)
		}
	}
	if o.size == 0 {
		return nil, fmt.Errorf("section %s is missing", originalSection)
	}
	return o, nil
}

// shape is what the original shows to the outside.
func (o *outline) shape() (*shape, error) {
	s, err := readShape(o.secs)
	if err != nil {
		return nil, err
	}
	own := s.imports[:0]
	for _, im := range s.imports {
		if im.Module != meter.ImportModule { // the pass refuses modules that import from there themselves
			own = append(own, im)
		}
	}
	s.imports = own
	return s, nil
}
