package meter

// operator reads one operator of the input, charges it, and changes it where
// the rewritten module needs another.
func (b *body) operator() {
	r := &b.in
	at := r.pos
	op := r.u8()
	if r.err != nil {
		return
	}
	b.charge()
	switch op {
	case opBlock, opLoop, opIf, opElse, opEnd:
		b.structure(at, op)
	case opCall:
		fn := r.index("function", b.w.funcs())
		if int(fn) < b.w.importedFuncs {
			b.chargeUnits(hostCallCost)
		}
		b.replace(at, b.w.moved(fn))
	case opCallIndirect:
		r.index("type", len(b.w.params))
		r.zero("table")
		b.chargeUnits(indirectCost) // it may lead to the host as well
	case opBr:
		b.branch()
		b.endOfPath()
	case opBrIf:
		b.branch()
	case opBrTable:
		for i := r.count(1); i >= 0 && r.err == nil; i-- {
			b.branch()
		}
		b.endOfPath()
	case opUnreachable, opReturn:
		b.endOfPath()
	case opLocalGet, opLocalSet, opLocalTee:
		r.index("local", int(b.locals))
	case opGlobalGet, opGlobalSet:
		r.index("global", b.w.globals)
	case opMemorySize:
		r.zero("memory")
	case opMemoryGrow:
		r.zero("memory")
		b.payOperand(at, true)
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.take(4)
	case opF64Const:
		r.take(8)
	case opNop, opDrop, opSelect:
	case opPrefix:
		b.prefixed(at)
	case opVector:
		r.vector(at)
	default:
		switch {
		case op >= opFirstLoad && op <= opLastStore:
			r.memoryArgument(at, int(op))
		case op >= opFirstNumeric && op <= opLastNumeric:
		default:
			r.failOp(ErrUnsupported, at, int(op), "unknown operator")
		}
	}
}

// structure keeps track of the open blocks.
func (b *body) structure(at int, op byte) {
	r := &b.in
	switch op {
	case opElse:
		if b.top().opener != opIf {
			r.failOp(ErrMalformed, at, int(op), "else without if")
		}
		b.turn()
	case opEnd:
		b.leave()
	default:
		b.blockType()
		if len(b.blocks) > maxNesting {
			r.failOp(ErrUnsupported, at, int(op), "blocks nested too deeply")
		}
		if r.err != nil {
			return
		}
		if op == opLoop {
			b.checkpoint(op)
		} else {
			b.enter(op, b.top().payer)
		}
	}
}

func (b *body) blockType() {
	r := &b.in
	at := r.pos
	t := r.signed(33)
	if r.err != nil || t >= 0 && t < int64(len(b.w.params)) {
		return
	}
	if t >= 0 {
		r.fail(ErrMalformed, at, "type %d of %d", t, len(b.w.params))
		return
	}
	// The types of one byte, as the negative numbers that they are here.
	switch byte(t) & 0x7f {
	case typeEmpty, typeI32, typeI64, typeF32, typeF64, typeV128:
		if t >= -64 {
			return
		}
	}
	r.fail(ErrUnsupported, at, "block type %d", t)
}

// prefixed reads the rest of an operator that starts with opPrefix. Operators on
// ranges are paid for by their last operand.
func (b *body) prefixed(at int) {
	r := &b.in
	op := r.u32()
	switch op {
	case opMemoryInit:
		r.u32() // segment
		r.zero("memory")
		b.payOperand(at, false)
	case opMemoryCopy:
		b.needsMemory(at)
		r.zero("memory")
		r.zero("memory")
		b.replace(at, b.w.copyFunc())
		b.copies = true
	case opMemoryFill:
		b.needsMemory(at)
		r.zero("memory")
		b.replace(at, b.w.fillFunc())
		b.fills = true
	case opTableInit:
		r.u32() // segment
		r.zero("table")
		b.payOperand(at, false)
	case opTableCopy:
		r.zero("table")
		r.zero("table")
		b.payOperand(at, false)
	case opDataDrop, opElemDrop:
		r.u32()
	default:
		if op > opLastTruncSat {
			r.failOp(ErrUnsupported, at, opPrefix<<8|int(min(op, 0xff)), "unknown operator")
		}
	}
}

// needsMemory is for an operator that a call replaces, which would be valid
// without memory too.
func (b *body) needsMemory(at int) {
	if b.w.memories == 0 {
		b.in.fail(ErrMalformed, at, "no memory to work on")
	}
}

// memoryArgument reads alignment and offset of a load or store.
func (r *reader) memoryArgument(at, opcode int) {
	if align := r.u32(); align >= 32 {
		r.failOp(ErrUnsupported, at, opcode, "memory argument")
	}
	r.u32()
}

// vector reads the rest of an operator that starts with opVector; the work of none
// of them depends on an operand. Only the shortest form of its number is taken,
// since not every engine reads the others alike.
func (r *reader) vector(at int) {
	op := r.u8()
	opcode := opVector<<8 | int(op)
	if op >= 0x80 {
		if high := r.u8(); high != 1 && r.err == nil {
			r.failOp(ErrUnsupported, at, opcode, "unknown operator")
		}
		return
	}
	switch {
	case op <= 0x0b, op == 0x5c, op == 0x5d: // loads and stores
		r.memoryArgument(at, opcode)
	case op == opV128Const, op == 0x0d: // i8x16.shuffle
		r.take(16)
	case op >= 0x15 && op <= 0x22: // of one lane
		r.u8()
	case op >= 0x54 && op <= 0x5b: // loads and stores of one lane
		r.memoryArgument(at, opcode)
		r.u8()
	}
}
