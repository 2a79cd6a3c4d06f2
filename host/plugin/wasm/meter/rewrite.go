package meter

// rewriter holds what is known about the original while the rewritten module
// grows behind it.
type rewriter struct {
	out      []byte
	limit    int // for the length of out
	maxTable uint32

	params    []uint32 // number of parameters, by type index
	funcTypes []uint32 // type index of every defined function

	importedFuncs int
	globals       int // imported and defined
	tables        int
	memories      int
}

// funcs is the number of functions of the original, imported and defined.
func (w *rewriter) funcs() int { return w.importedFuncs + len(w.funcTypes) }

// How many types and defined functions are added.
const addedTypes, addedFuncs = 3, 3

// Indexes of what is added, in the rewritten module.
func (w *rewriter) refillType() uint32 { return uint32(len(w.params)) }
func (w *rewriter) spentType() uint32  { return uint32(len(w.params)) + 1 }
func (w *rewriter) refillFunc() uint32 { return uint32(w.importedFuncs) }
func (w *rewriter) bulkType() uint32   { return uint32(len(w.params)) + 2 }
func (w *rewriter) spentFunc() uint32  { return uint32(w.funcs()) + 1 }
func (w *rewriter) fillFunc() uint32   { return uint32(w.funcs()) + 2 }
func (w *rewriter) copyFunc() uint32   { return uint32(w.funcs()) + 3 }
func (w *rewriter) fuelGlobal() uint32 { return uint32(w.globals) }

// moved is the index in the rewritten module of a function of the original.
func (w *rewriter) moved(fn uint32) uint32 {
	if fn >= uint32(w.importedFuncs) {
		return fn + 1
	}
	return fn
}

func (w *rewriter) module(l *layout) error {
	w.out = append(w.out, preamble...)
	w.out = append(w.out, l.custom[0]...)
	var content []byte
	for _, id := range order {
		if !l.exists[id] && !added(id) {
			continue
		}
		r := &l.found[id]
		content = w.section(id, r, content[:0])
		r.done("section")
		if r.err != nil {
			return r.err
		}
		if len(w.out)+len(content)+len(l.custom[id])+6 > w.limit {
			return w.tooLarge(r.pos)
		}
		w.out = append(w.out, id)
		w.out = appendU32(w.out, uint32(len(content)))
		w.out = append(w.out, content...)
		w.out = append(w.out, l.custom[id]...)
	}
	return nil
}

func (w *rewriter) tooLarge(at int) error {
	return &Error{Kind: ErrTooLarge, Offset: at, Opcode: -1, Detail: "more bytes than Options.MaxBytes"}
}

// added tells whether the rewritten module has a section even if the original
// doesn't.
func added(id byte) bool {
	switch id {
	case secType, secImport, secFunction, secGlobal, secCode:
		return true
	}
	return false
}

// section appends the rewritten content of one section to dst.
func (w *rewriter) section(id byte, r *reader, dst []byte) []byte {
	switch id {
	case secType:
		return w.types(r, dst)
	case secImport:
		return w.imports(r, dst)
	case secFunction:
		return w.functions(r, dst)
	case secTable:
		return w.tableSection(r, dst)
	case secMemory:
		return w.memorySection(r, dst)
	case secGlobal:
		return w.globalSection(r, dst)
	case secExport:
		return w.exports(r, dst)
	case secStart:
		return w.start(r, dst)
	case secElement:
		return w.elements(r, dst)
	case secCode:
		return w.code(r, dst)
	case secData:
		return w.data(r, dst)
	}
	return appendU32(dst, r.u32()) // secDataCount
}
