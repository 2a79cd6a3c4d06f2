package meter

// code rewrites every function body and appends those of the added functions.
func (w *rewriter) code(r *reader, dst []byte) []byte {
	at := r.pos
	n := r.count(3)
	if n != len(w.funcTypes) {
		r.fail(ErrMalformed, at, "%d function bodies for %d functions", n, len(w.funcTypes))
	}
	dst = appendU32(dst, uint32(n+addedFuncs))
	b := body{w: w}
	for i := 0; i < n && r.err == nil; i++ {
		size := r.u32()
		start := r.pos
		r.take(size)
		if r.err != nil {
			break
		}
		b.rewrite(reader{buf: r.buf[:r.pos], pos: start}, w.params[w.funcTypes[i]])
		if r.err = b.in.err; r.err != nil {
			break
		}
		dst = appendU32(dst, uint32(len(b.head)+len(b.out)))
		dst = append(dst, b.head...)
		dst = append(dst, b.out...)
		if len(w.out)+len(dst) > w.limit {
			r.err = w.tooLarge(r.pos)
		}
	}

	for _, added := range [][]byte{
		w.spentBody(), w.bulkBody(opMemoryFill, b.fills), w.bulkBody(opMemoryCopy, b.copies),
	} {
		dst = appendU32(dst, uint32(len(added)))
		dst = append(dst, added...)
	}
	return dst
}

// spentBody is the body of the function that asks the host.
func (w *rewriter) spentBody() []byte {
	fuel := w.fuelGlobal()
	spent := []byte{0} // no locals
	spent = appendOp(spent, opGlobalGet, fuel)
	spent = appendOp(spent, opCall, w.refillFunc())
	spent = appendOp(spent, opGlobalSet, fuel)
	spent = appendOp(spent, opGlobalGet, fuel)
	return append(spent, opI64Const, 0, opI64LtS, opIf, typeEmpty, opUnreachable, opEnd, opEnd)
}

func appendOp(b []byte, op byte, index uint32) []byte {
	return appendU32(append(b, op), index)
}

// body rewrites one function at a time and keeps its buffers for the next.
type body struct {
	w    *rewriter
	in   reader
	head []byte // declarations of locals
	out  []byte // operators
	from int    // where the input starts that is to be copied to out as it is

	locals  uint32 // parameters and declared
	scratch bool   // whether one more i32 is needed, behind them

	fills, copies bool // whether any function called those that are added for it

	blocks []block
	payers []payer
}

func (b *body) rewrite(in reader, params uint32) {
	b.in, b.out, b.blocks, b.payers, b.scratch = in, b.out[:0], b.blocks[:0], b.payers[:0], false
	decls, n := b.declarations(params)
	b.from = b.in.pos
	b.checkpoint(opBlock)
	for len(b.blocks) > 0 && b.in.err == nil {
		b.operator()
		// A body of nothing but loops grows tenfold, so the limit is held here.
		if len(b.out) > b.w.limit {
			b.in.err = b.w.tooLarge(b.in.pos)
		}
	}
	b.in.done("function body")
	b.flush(b.in.pos)
	for _, p := range b.payers {
		putCost(b.out[p.at:], p.cost)
	}
	if b.scratch {
		n++
	}
	b.head = appendU32(b.head[:0], n)
	b.head = append(b.head, decls...)
	if b.scratch {
		b.head = append(b.head, 1, typeI32)
	}
}

// declarations reads the locals of the function and returns them as they are.
func (b *body) declarations(params uint32) (decls []byte, n uint32) {
	r := &b.in
	n = uint32(r.count(2))
	from := r.pos
	total := uint64(params)
	for i := uint32(0); i < n && r.err == nil; i++ {
		at := r.pos
		total += uint64(r.u32())
		if total > maxLocals {
			r.fail(ErrUnsupported, at, "more than %d locals", maxLocals)
		}
		valueType(r)
	}
	b.locals = uint32(total)
	return r.buf[from:r.pos], n
}

// flush copies the input up to an offset.
func (b *body) flush(to int) {
	b.out = append(b.out, b.in.buf[b.from:to]...)
	b.from = to
}

// checkpoint opens the function or a loop and inserts its check. The cost isn't
// known before the end, so its place is left open.
func (b *body) checkpoint(opener byte) {
	b.flush(b.in.pos)
	b.enter(opener, int32(len(b.payers)))
	b.out = appendOp(b.out, opGlobalGet, b.w.fuelGlobal())
	b.out = append(b.out, opI64Const)
	b.payers = append(b.payers, payer{at: len(b.out), path: 1, cost: 1})
	b.out = appendCost(b.out, 0)
	b.out = b.w.appendPay(b.out)
}

// appendPay ends a check: it takes what is on the stack from the fuel below it.
func (w *rewriter) appendPay(b []byte) []byte {
	fuel := w.fuelGlobal()
	b = append(b, opI64Sub)
	b = appendOp(b, opGlobalSet, fuel)
	b = appendOp(b, opGlobalGet, fuel)
	b = append(b, opI64Const, 0, opI64LtS, opIf, typeEmpty)
	b = appendOp(b, opCall, w.spentFunc())
	return append(b, opEnd)
}

// payOperand inserts a check in front of the operator at an offset, which costs
// one unit for each byte or element of its last operand. For memory.grow, that
// counts pages, it is the bytes of the memory that it ends up with.
func (b *body) payOperand(at int, grow bool) {
	b.flush(at)
	b.scratch = true
	b.out = appendOp(b.out, opLocalSet, b.locals)
	b.out = appendOp(b.out, opGlobalGet, b.w.fuelGlobal())
	b.out = appendOp(b.out, opLocalGet, b.locals)
	b.out = append(b.out, opI64ExtendU)
	if grow {
		b.out = append(b.out, opMemorySize, 0, opI64ExtendU, opI64Add, opI64Const, pageShift, opI64Shl)
	}
	b.out = b.w.appendPay(b.out)
	b.out = appendOp(b.out, opLocalGet, b.locals)
}

// replace puts a call of an added function in the place of the operator that
// starts at an offset and was just read.
func (b *body) replace(at int, fn uint32) {
	b.flush(at)
	b.out = appendOp(b.out, opCall, fn)
	b.from = b.in.pos
}

// costBytes is the length of a cost in a check: enough for the operators of any
// module that is accepted, in signed LEB128 padded to a fixed length.
const costBytes = 4

func appendCost(b []byte, units int32) []byte {
	b = append(b, make([]byte, costBytes)...)
	putCost(b[len(b)-costBytes:], units)
	return b
}

func putCost(dst []byte, units int32) {
	for i := range costBytes - 1 {
		dst[i] = byte(units>>(7*i))&0x7f | 0x80
	}
	dst[costBytes-1] = byte(units >> (7 * (costBytes - 1)))
}
