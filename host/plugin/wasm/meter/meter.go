package meter

// How a host instantiates a rewritten module; see the package comment.
const (
	// ImportModule and ImportName name the function that a rewritten module
	// imports in addition to the original's imports. Its type is (i64) -> (i64).
	ImportModule = "lh1_fuel"
	ImportName   = "refill"

	// Refuse is a result of the imported function that ends the guest with a
	// trap; any negative number does.
	Refuse int64 = -1

	// Quantum is a grant, in units, that costs next to nothing to ask for and is
	// soon used up: in 0.03 ms by Go guests, in 0.6 ms by loops of nothing but
	// arithmetic, in some 0.1 s by code that misses the cache with every operator.
	// A deadline can be late by that, and so can the Go garbage collector, which
	// waits for a guest until it asks.
	Quantum int64 = 1 << 20
)

const (
	pageShift      = 16        // a page is 64 KiB
	maxLocals      = 50_000    // per function; engines allow no more
	maxNesting     = 1 << 16   // blocks within blocks in a function
	maxModuleBytes = 1<<27 - 1 // so that a cost fits into four bytes
	defaultTable   = 1 << 20
	maxCost        = 1<<27 - 1 // of a check, so that it fits into costBytes

	// A call of an imported function is more work than an operator, even where the
	// host does nothing any more. An indirect call may be one.
	hostCallCost = 64
	indirectCost = 16
)

// Options of [Rewrite]; the zero value is fine.
type Options struct {
	// MaxBytes bounds the rewritten module, in bytes; 0 means twice the original
	// and 1 MiB. (Go guests grow by a hundredth; a module of nothing but loops
	// would grow tenfold.) More is refused with [ErrTooLarge], as is an original
	// of 128 MiB or more whatever is set here.
	MaxBytes int
	// MaxTable bounds the elements that a table starts with; 0 means 2^20. An
	// engine allocates them (8 bytes each) when it instantiates the module, and
	// no limit on memory holds there. More is refused with [ErrTooLarge].
	MaxTable uint32
}

// Rewrite returns a copy of a core module with fuel checks inserted, which
// behaves like the original for as long as the host refills. The input isn't
// changed and the output doesn't share memory with it.
//
// Every error is an [*Error] whose kind is [ErrMalformed], [ErrUnsupported],
// [ErrReserved] or [ErrTooLarge]. Rewrite takes arbitrary bytes: it needs time
// and memory in proportion to its input and the limit of its output, and never
// panics. It isn't a validator: an invalid module may be accepted, and the
// result is then invalid too.
func Rewrite(module []byte, opts Options) ([]byte, error) {
	limit := opts.MaxBytes
	if limit <= 0 {
		limit = 2*len(module) + 1<<20
	}
	if len(module) > maxModuleBytes {
		return nil, &Error{Kind: ErrTooLarge, Opcode: -1, Detail: "module of 128 MiB or more"}
	}
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	maxTable := opts.MaxTable
	if maxTable == 0 {
		maxTable = defaultTable
	}
	w := rewriter{limit: limit, maxTable: maxTable, out: make([]byte, 0, min(limit, len(module)+len(module)/8+256))}
	if err := w.module(sections); err != nil {
		return nil, err
	}
	return w.out, nil
}
