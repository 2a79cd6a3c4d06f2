package meter

const (
	typeI32     = 0x7f
	typeI64     = 0x7e
	typeF32     = 0x7d
	typeF64     = 0x7c
	typeV128    = 0x7b
	typeFuncref = 0x70
	typeFunc    = 0x60
	typeEmpty   = 0x40 // of a block

	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3
)

// vector copies a vector of n elements, each read by item, and announces extra
// more of them, which the caller appends.
func vector(r *reader, dst []byte, n, extra int, item func()) []byte {
	dst = appendU32(dst, uint32(n+extra))
	from := r.pos
	for range n {
		if item(); r.err != nil {
			return dst
		}
	}
	return append(dst, r.buf[from:r.pos]...)
}

func valueType(r *reader) {
	at := r.pos
	switch t := r.u8(); t {
	case typeI32, typeI64, typeF32, typeF64, typeV128:
	default:
		r.fail(ErrUnsupported, at, "value type 0x%02x", t)
	}
}

func limits(r *reader) (least uint32) {
	at := r.pos
	switch flags := r.u8(); flags {
	case 0:
		return r.u32()
	case 1:
		least = r.u32()
		r.u32()
		return least
	default:
		r.fail(ErrUnsupported, at, "limits of kind 0x%02x", flags)
		return 0
	}
}

func (w *rewriter) tableType(r *reader) {
	at := r.pos
	if t := r.u8(); t != typeFuncref {
		r.fail(ErrUnsupported, at, "table of type 0x%02x", t)
	}
	if least := limits(r); least > w.maxTable {
		r.fail(ErrTooLarge, at, "table of %d elements", least)
	}
	if w.tables++; w.tables > 1 {
		r.fail(ErrUnsupported, at, "more than one table")
	}
}

func (w *rewriter) memoryType(r *reader) {
	at := r.pos
	limits(r)
	if w.memories++; w.memories > 1 {
		r.fail(ErrUnsupported, at, "more than one memory")
	}
}

func (w *rewriter) globalType(r *reader) {
	valueType(r)
	at := r.pos
	if mut := r.u8(); mut > 1 {
		r.fail(ErrUnsupported, at, "mutability 0x%02x", mut)
	}
	w.globals++
}

func (w *rewriter) types(r *reader, dst []byte) []byte {
	n := r.count(3)
	w.params = make([]uint32, 0, n)
	dst = vector(r, dst, n, addedTypes, func() {
		at := r.pos
		if form := r.u8(); form != typeFunc {
			r.fail(ErrUnsupported, at, "type of form 0x%02x", form)
		}
		params := r.count(1)
		for i := 0; i < params && r.err == nil; i++ {
			valueType(r)
		}
		results := r.count(1)
		for i := 0; i < results && r.err == nil; i++ {
			valueType(r)
		}
		w.params = append(w.params, uint32(params))
	})
	dst = append(dst, typeFunc, 1, typeI64, 1, typeI64)
	dst = append(dst, typeFunc, 0, 0)
	return append(dst, typeFunc, 3, typeI32, typeI32, typeI32, 0)
}

func (w *rewriter) imports(r *reader, dst []byte) []byte {
	dst = vector(r, dst, r.count(4), 1, func() {
		at := r.pos
		if string(r.take(r.u32())) == ImportModule && r.err == nil {
			r.fail(ErrReserved, at, "import from %q", ImportModule)
		}
		r.take(r.u32())
		at = r.pos
		switch kind := r.u8(); kind {
		case kindFunc:
			r.index("type", len(w.params))
			w.importedFuncs++
		case kindTable:
			w.tableType(r)
		case kindMemory:
			w.memoryType(r)
		case kindGlobal:
			w.globalType(r)
		default:
			r.fail(ErrUnsupported, at, "import of kind 0x%02x", kind)
		}
	})
	dst = appendU32(dst, uint32(len(ImportModule)))
	dst = append(dst, ImportModule...)
	dst = appendU32(dst, uint32(len(ImportName)))
	dst = append(dst, ImportName...)
	dst = append(dst, kindFunc)
	return appendU32(dst, w.refillType())
}

func (w *rewriter) functions(r *reader, dst []byte) []byte {
	n := r.count(1)
	w.funcTypes = make([]uint32, 0, n)
	dst = vector(r, dst, n, addedFuncs, func() {
		w.funcTypes = append(w.funcTypes, r.index("type", len(w.params)))
	})
	dst = appendU32(dst, w.spentType())
	return appendU32(appendU32(dst, w.bulkType()), w.bulkType())
}

func (w *rewriter) tableSection(r *reader, dst []byte) []byte {
	return vector(r, dst, r.count(3), 0, func() { w.tableType(r) })
}

func (w *rewriter) memorySection(r *reader, dst []byte) []byte {
	return vector(r, dst, r.count(2), 0, func() { w.memoryType(r) })
}

func (w *rewriter) globalSection(r *reader, dst []byte) []byte {
	dst = vector(r, dst, r.count(4), 1, func() {
		w.globalType(r)
		w.constExpr(r)
	})
	return append(dst, typeI64, 1, opI64Const, 0, opEnd)
}

// constExpr reads a constant expression of one operator.
func (w *rewriter) constExpr(r *reader) {
	at := r.pos
	switch op := r.u8(); op {
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.take(4)
	case opF64Const:
		r.take(8)
	case opGlobalGet:
		r.index("global", w.globals)
	case opVector:
		if sub := r.u8(); sub != opV128Const && r.err == nil {
			r.failOp(ErrUnsupported, at, opVector<<8|int(sub), "constant expression")
		}
		r.take(16)
	default:
		r.failOp(ErrUnsupported, at, int(op), "constant expression")
	}
	at = r.pos
	if op := r.u8(); op != opEnd {
		r.failOp(ErrUnsupported, at, int(op), "constant expression of several operators")
	}
}

func (w *rewriter) exports(r *reader, dst []byte) []byte {
	n := r.count(3)
	dst = appendU32(dst, uint32(n))
	for range n {
		name := r.take(r.u32())
		at := r.pos
		kind := r.u8()
		var i uint32
		switch kind {
		case kindFunc:
			i = w.moved(r.index("function", w.funcs()))
		case kindTable:
			i = r.index("table", w.tables)
		case kindMemory:
			i = r.index("memory", w.memories)
		case kindGlobal:
			i = r.index("global", w.globals)
		default:
			r.fail(ErrUnsupported, at, "export of kind 0x%02x", kind)
		}
		if r.err != nil {
			break
		}
		dst = appendU32(dst, uint32(len(name)))
		dst = append(dst, name...)
		dst = append(dst, kind)
		dst = appendU32(dst, i)
	}
	return dst
}

func (w *rewriter) start(r *reader, dst []byte) []byte {
	return appendU32(dst, w.moved(r.index("function", w.funcs())))
}
