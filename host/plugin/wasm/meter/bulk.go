package meter

// memory.fill and memory.copy become calls of added functions of the same type,
// which work in pieces and pay for one at a time: the first touch of memory can
// take a machine many milliseconds for each mebibyte, so that a single operator
// over a large memory would outlast any deadline. An operator that must trap
// does so as a whole, before anything is written.

// piece is how much is filled or copied between two checks, in bytes.
const piece = 1 << 20

// Locals of the added functions.
const (
	bulkDst   = 0
	bulkOther = 1 // the value of a fill, the source of a copy
	bulkLen   = 2
)

// bulkBody is the body of the added function for memory.fill or memory.copy; of
// one that nobody calls only a stub remains, which needs no memory.
func (w *rewriter) bulkBody(op byte, used bool) []byte {
	b := []byte{0} // no locals
	if !used {
		return append(b, opUnreachable, opEnd)
	}
	whole := []byte{opLocalGet, bulkDst, opLocalGet, bulkOther, opLocalGet, bulkLen}
	whole = appendBulk(whole, op)

	b = append(b, opLoop, typeEmpty)
	b = append(b, opLocalGet, bulkLen)
	b = appendPiece(b, opI32Const)
	b = append(b, opI32GtU, opIf, typeEmpty)

	b = appendBeyond(b, bulkDst)
	if op == opMemoryCopy {
		b = append(appendBeyond(b, bulkOther), opI32Or)
	}
	b = append(b, opIf, typeEmpty)
	b = append(b, whole...) // traps
	b = append(b, opEnd)

	b = appendOp(b, opGlobalGet, w.fuelGlobal())
	b = appendPiece(b, opI64Const)
	b = w.appendPay(b)

	if op == opMemoryFill {
		b = append(b, opLocalGet, bulkDst, opLocalGet, bulkOther)
		b = appendPiece(b, opI32Const)
		b = appendBulk(b, op)
		b = appendStep(b, bulkDst, opI32Add)
	} else {
		// The order of the pieces keeps the source whole where both overlap.
		b = append(b, opLocalGet, bulkDst, opLocalGet, bulkOther, opI32LeU, opIf, typeEmpty)
		b = append(b, opLocalGet, bulkDst, opLocalGet, bulkOther)
		b = appendPiece(b, opI32Const)
		b = appendBulk(b, op)
		b = appendStep(b, bulkDst, opI32Add)
		b = appendStep(b, bulkOther, opI32Add)
		b = append(b, opElse)
		for _, start := range []byte{bulkDst, bulkOther} {
			b = append(b, opLocalGet, start, opLocalGet, bulkLen, opI32Add)
			b = appendPiece(b, opI32Const)
			b = append(b, opI32Sub)
		}
		b = appendPiece(b, opI32Const)
		b = appendBulk(b, op)
		b = append(b, opEnd)
	}
	b = appendStep(b, bulkLen, opI32Sub)
	b = append(b, opBr, 1, opEnd, opEnd)

	b = appendOp(b, opGlobalGet, w.fuelGlobal())
	b = append(b, opLocalGet, bulkLen, opI64ExtendU)
	b = w.appendPay(b)
	b = append(b, whole...)
	return append(b, opEnd)
}

func appendBulk(b []byte, op byte) []byte {
	b = append(b, opPrefix, op, 0)
	if op == opMemoryCopy {
		b = append(b, 0)
	}
	return b
}

// appendPiece appends a constant, the length of a piece.
func appendPiece(b []byte, op byte) []byte { return appendCost(append(b, op), piece) }

// appendStep moves a local by a piece.
func appendStep(b []byte, local, op byte) []byte {
	b = appendPiece(append(b, opLocalGet, local), opI32Const)
	return append(b, op, opLocalSet, local)
}

// appendBeyond asks whether a range that starts at a local ends beyond the memory.
func appendBeyond(b []byte, local byte) []byte {
	return append(b, opLocalGet, local, opI64ExtendU, opLocalGet, bulkLen, opI64ExtendU, opI64Add,
		opMemorySize, 0, opI64ExtendU, opI64Const, pageShift, opI64Shl, opI64GtU)
}
