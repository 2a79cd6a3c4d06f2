package meter

const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opFirstLoad    = 0x28
	opLastStore    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opFirstNumeric = 0x45 // i32.eqz
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Or        = 0x72
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Shl       = 0x86
	opI64ExtendU   = 0xad // i64.extend_i32_u
	opLastNumeric  = 0xc4 // i64.extend32_s
	opPrefix       = 0xfc
	opVector       = 0xfd

	// Behind opPrefix.
	opLastTruncSat = 0x07
	opMemoryInit   = 0x08
	opDataDrop     = 0x09
	opMemoryCopy   = 0x0a
	opMemoryFill   = 0x0b
	opTableInit    = 0x0c
	opElemDrop     = 0x0d
	opTableCopy    = 0x0e

	// Behind opVector.
	opV128Const = 0x0c
)
