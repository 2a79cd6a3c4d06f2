package meter

import (
	"errors"
	"fmt"
)

// Kinds of errors. [Rewrite] returns them inside an [*Error].
var (
	// ErrMalformed: the bytes are not a module. Refuse it.
	ErrMalformed = errors.New("malformed WebAssembly module")
	// ErrUnsupported: the module uses something that the pass doesn't know, and
	// may be valid all the same. Run the original with another bound on its time.
	ErrUnsupported = errors.New("module can't be metered")
	// ErrReserved: the module imports from [ImportModule]. Refuse it; it must not
	// be run unmetered either, since it asks for the meter's own function.
	ErrReserved = errors.New("module imports a reserved name")
	// ErrTooLarge: the module passes a limit of [Options]. Refuse it.
	ErrTooLarge = errors.New("module is too large")
)

// Error says what Rewrite didn't accept, and where.
type Error struct {
	// Kind is one of the sentinels of this package.
	Kind error
	// Offset is the position in the original module, in bytes.
	Offset int
	// Opcode is the operator at Offset, with its prefix in the upper byte
	// (0xFC0A is memory.copy), or -1 where the error isn't about an operator.
	Opcode int
	// Detail is for people.
	Detail string
}

func (e *Error) Error() string {
	if e.Opcode >= 0 {
		return fmt.Sprintf("meter: %v: %s (opcode 0x%02x at offset %d)", e.Kind, e.Detail, e.Opcode, e.Offset)
	}
	return fmt.Sprintf("meter: %v: %s (at offset %d)", e.Kind, e.Detail, e.Offset)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
