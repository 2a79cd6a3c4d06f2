package meter_test

// generator makes valid modules from arbitrary bytes: structured code with
// every kind of branch, calls, memory and table operators. Two things make its
// modules comparable: they end by themselves (every function entry and loop
// header takes from a budget), and they count the operators they are known to
// have run in the exported global "work".
type generator struct {
	data  []byte
	sigs  []signature // of the defined functions; types have the same indexes
	local []byte      // types of the locals of the function at hand
	ret   []byte
	label []label
	room  int // operators that may still be emitted, about
}

type signature struct{ params, results []byte }

// label is what a branch can name; carries is 0 or the type of a value.
type label struct {
	carries byte
	results []byte // of the function's own label
}

const (
	globalBudget, globalWork, globalI32, globalI64, globalF64 = 0, 1, 2, 3, 4
	tickFunc                                                  = 0 // imported, (i32) -> (i32)
)

var signatures = []signature{
	{op(i32, i64), op(i32)},
	{nil, nil},
	{op(i32), op(i32)},
	{op(i64, i32), op(i64)},
	{op(i32, i32), op(i32, i64)},
	{op(f64), op(f64)},
	{op(i64), nil},
}

// pick returns a number below n; without data left it is 0, which always leads
// to the simplest choice.
func (g *generator) pick(n int) int {
	if len(g.data) == 0 || n <= 1 {
		return 0
	}
	v := int(g.data[0])
	g.data = g.data[1:]
	return v % n
}

// generate returns a module whose function "run" is of the first signature.
func generate(data []byte) []byte {
	g := &generator{data: data, sigs: []signature{signatures[0]}}
	for range 1 + g.pick(5) {
		g.sigs = append(g.sigs, signatures[g.pick(len(signatures))])
	}
	types := [][]byte{}
	funcs := [][]byte{}
	table := [][]byte{uleb(tickFunc)}
	bodies := [][]byte{}
	for i, s := range g.sigs {
		types = append(types, funcType(s.params, s.results))
		funcs = append(funcs, uleb(uint64(i)))
		table = append(table, uleb(uint64(i+1)))
	}
	tick := uint64(len(types))
	types = append(types, funcType(op(i32), op(i32)))
	for _, s := range g.sigs {
		bodies = append(bodies, g.function(s))
	}
	return module(
		section(1, types...),
		section(2, cat(text("host"), text("tick"), op(0), uleb(tick))),
		section(3, funcs...),
		section(4, op(0x70, 0, 16)),
		section(5, op(1, 1, 3)),
		section(6,
			cat(op(i32, 1), constI32(200), op(end)),
			cat(op(i64, 1, 0x42, 0, end)),
			cat(op(i32, 1), constI32(7), op(end)),
			cat(op(i64, 1, 0x42, 9, end)),
			cat(op(f64, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, end)),
		),
		section(7, export("run", 0, 1), export("work", 3, globalWork), export("budget", 3, globalBudget),
			export("g32", 3, globalI32), export("g64", 3, globalI64), export("memory", 2, 0)),
		section(9, cat(op(0), constI32(2), op(end), vec(table...)), cat(op(1, 0), vec(table...))),
		cat(op(12), sized(op(2))),
		section(10, bodies...),
		section(11, cat(op(0), constI32(64), op(end), text("active data of the module")), cat(op(1), text("passive data, which memory.init copies"))),
	)
}

func (g *generator) function(s signature) []byte {
	g.local = append(append([]byte{}, s.params...), i32, i64, f64, i32)
	g.ret = s.results
	g.label = []label{{results: s.results}}
	g.room = 300
	code := cat(g.budget(), g.stmts(4))
	for _, t := range s.results {
		code = cat(code, g.expr(t, 3))
	}
	locals := cat(op(4, 1, i32, 1, i64, 1, f64, 1, i32))
	return sized(cat(locals, code, op(end)))
}

// budget traps when nothing is left, and takes one.
func (g *generator) budget() []byte {
	return cat(op(globalGet, globalBudget, 0x45, if_, void, unreachable, end,
		globalGet, globalBudget), constI32(1), op(0x6b, globalSet, globalBudget))
}

// mark counts itself and some operators that do nothing.
func (g *generator) mark() []byte {
	n := g.pick(24)
	g.room -= 4
	out := cat(op(globalGet, globalWork, 0x42), sleb(int64(4+n)), op(0x7c, globalSet, globalWork))
	for range n {
		out = append(out, nop)
	}
	return out
}

func (g *generator) stmts(depth int) []byte {
	var out []byte
	for range 1 + g.pick(4) {
		out = cat(out, g.mark(), g.stmt(depth))
	}
	return out
}

// within generates code with one more label around it.
func (g *generator) within(l label, f func() []byte) []byte {
	g.label = append(g.label, l)
	defer func() { g.label = g.label[:len(g.label)-1] }()
	return f()
}

func (g *generator) stmt(depth int) []byte {
	if depth == 0 || g.room < 0 {
		return nil
	}
	d := depth - 1
	switch g.pick(22) {
	case 1:
		t := g.valueType()
		return cat(g.expr(t, d), op(localSet), g.localOf(t))
	case 2:
		return cat(g.expr(i32, d), op(globalSet, globalI32))
	case 3:
		return cat(g.expr(i64, d), op(globalSet, globalI64))
	case 4:
		return cat(g.address(d), g.expr(i32, d), op(0x36, 2, 4)) // i32.store
	case 5:
		return cat(g.address(d), g.expr(i64, d), op(0x3c, 0, 1)) // i64.store8
	case 6:
		return cat(op(block, void), g.within(label{}, func() []byte { return g.stmts(d) }), op(end))
	case 7, 8:
		return cat(op(loop, void), g.within(label{}, func() []byte {
			again := []byte{}
			if g.pick(3) > 0 {
				again = cat(g.expr(i32, 1), op(brIf, 0))
			}
			return cat(g.budget(), g.stmts(d), again)
		}), op(end))
	case 9, 10:
		out := cat(g.expr(i32, d), op(if_, void), g.within(label{}, func() []byte { return g.stmts(d) }))
		if g.pick(2) == 1 {
			out = cat(out, op(else_), g.within(label{}, func() []byte { return g.stmts(d) }))
		}
		return cat(out, op(end))
	case 11:
		n := g.pick(len(g.label))
		return cat(g.carried(n, d), op(br), uleb(uint64(n)))
	case 12, 13:
		n := g.pick(len(g.label))
		out := cat(g.carried(n, d), g.expr(i32, d), op(brIf), uleb(uint64(n)))
		for range g.carries(n) {
			out = append(out, drop)
		}
		return out
	case 14:
		var targets [][]byte
		for range 1 + g.pick(4) {
			if n := g.pick(len(g.label)); len(g.carries(n)) == 0 {
				targets = append(targets, uleb(uint64(n)))
			}
		}
		if len(targets) == 0 {
			return nil
		}
		last := len(targets) - 1
		return cat(g.expr(i32, d), op(brTable), vec(targets[:last]...), targets[last])
	case 15:
		return cat(g.carried(len(g.label)-1, d), op(return_))
	case 16:
		if g.pick(6) == 5 {
			return op(unreachable)
		}
		return cat(g.expr(f64, d), op(globalSet, globalF64))
	case 17:
		return cat(g.address(d), g.expr(i32, d), g.length(d), op(0xfc, 11, 0)) // memory.fill
	case 18:
		return cat(g.address(d), g.address(d), g.length(d), op(0xfc, 10, 0, 0)) // memory.copy
	case 19:
		if g.pick(8) == 7 {
			return op(0xfc, 9, 1) // data.drop
		}
		return cat(g.address(d), constI32(int32(g.pick(20))), constI32(int32(g.pick(21))), op(0xfc, 8, 1, 0)) // memory.init
	case 20:
		a, b, n := constI32(int32(g.pick(10))), constI32(int32(g.pick(10))), constI32(int32(g.pick(5)))
		switch g.pick(8) {
		case 7:
			return op(0xfc, 13, 1) // elem.drop
		case 6, 5, 4:
			return cat(a, b, n, op(0xfc, 12, 1, 0)) // table.init
		}
		return cat(a, b, n, op(0xfc, 14, 0, 0)) // table.copy
	case 21:
		return g.callAny(d)
	}
	return nil
}

// callAny calls a function, directly or through the table, and drops its results.
func (g *generator) callAny(depth int) []byte {
	n := g.pick(len(g.sigs))
	var out []byte
	for _, t := range g.sigs[n].params {
		out = cat(out, g.expr(t, depth))
	}
	if g.pick(3) == 2 {
		out = cat(out, g.expr(i32, depth), constI32(15), op(0x71, 0x11), uleb(uint64(n)), op(0))
	} else {
		out = cat(out, op(call), uleb(uint64(n+1)))
	}
	for range g.sigs[n].results {
		out = append(out, drop)
	}
	return out
}

func (g *generator) carries(n int) []byte {
	l := g.label[len(g.label)-1-n]
	if l.carries != 0 {
		return op(l.carries)
	}
	return l.results
}

func (g *generator) carried(n, depth int) []byte {
	var out []byte
	for _, t := range g.carries(n) {
		out = cat(out, g.expr(t, depth))
	}
	return out
}

func (g *generator) valueType() byte { return []byte{i32, i64, f64}[g.pick(3)] }

func (g *generator) localOf(t byte) []byte {
	var all []int
	for i, l := range g.local {
		if l == t {
			all = append(all, i)
		}
	}
	return uleb(uint64(all[g.pick(len(all))]))
}

// address is mostly within the first page.
func (g *generator) address(depth int) []byte {
	if g.pick(8) == 7 {
		return g.expr(i32, depth)
	}
	return cat(g.expr(i32, depth), constI32(0x7fff), op(0x71))
}

// length is mostly small.
func (g *generator) length(depth int) []byte {
	if g.pick(8) == 7 {
		return g.expr(i32, depth)
	}
	return cat(g.expr(i32, depth), constI32(0xfff), op(0x71))
}

var (
	binaryI32 = op(0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x46, 0x48, 0x4d)
	binaryI64 = op(0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89)
	binaryF64 = op(0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5)
)

func (g *generator) expr(t byte, depth int) []byte {
	if depth <= 0 || g.room < 0 {
		return g.leaf(t)
	}
	g.room--
	d := depth - 1
	switch g.pick(10) {
	case 1, 2:
		switch t {
		case i32:
			return cat(g.expr(t, d), g.expr(t, d), op(binaryI32[g.pick(len(binaryI32))]))
		case i64:
			return cat(g.expr(t, d), g.expr(t, d), op(binaryI64[g.pick(len(binaryI64))]))
		}
		return cat(g.expr(t, d), g.expr(t, d), op(binaryF64[g.pick(len(binaryF64))]))
	case 3:
		return cat(op(block, t), g.within(label{carries: t}, func() []byte { return cat(g.mark(), g.stmt(d), g.expr(t, d)) }), op(end))
	case 4:
		return cat(g.expr(i32, d), op(if_, t),
			g.within(label{carries: t}, func() []byte { return cat(g.mark(), g.expr(t, d)) }), op(else_),
			g.within(label{carries: t}, func() []byte { return cat(g.mark(), g.expr(t, d)) }), op(end))
	case 5:
		return cat(g.expr(t, d), g.expr(t, d), g.expr(i32, d), op(0x1b)) // select
	case 6:
		return cat(g.expr(t, d), op(localTee), g.localOf(t))
	case 7:
		// A loop that yields a value, which no branch to it carries.
		return cat(op(loop, t), g.within(label{}, func() []byte { return cat(g.budget(), g.mark(), g.stmt(d), g.expr(t, d)) }), op(end))
	case 8, 9:
		return g.special(t, d)
	}
	return g.leaf(t)
}

// special is what only some types have.
func (g *generator) special(t byte, d int) []byte {
	switch t {
	case i32:
		switch g.pick(7) {
		case 0:
			return cat(g.address(d), op(0x28, 2, 8)) // i32.load
		case 1:
			return cat(g.expr(i32, d), op(call, tickFunc))
		case 2:
			return op(0x3f, 0) // memory.size
		case 3:
			return cat(constI32(int32(g.pick(3))), op(0x40, 0)) // memory.grow
		case 4:
			return cat(g.expr(f64, d), op(0xfc, 2)) // i32.trunc_sat_f64_s
		case 5:
			return cat(g.expr(f64, d), op(0xaa)) // i32.trunc_f64_s
		}
		return cat(g.expr(i64, d), op(0xa7)) // i32.wrap_i64
	case i64:
		switch g.pick(3) {
		case 0:
			return cat(g.address(d), op(0x29, 3, 0)) // i64.load
		case 1:
			return cat(g.expr(i64, d), op(0xc2)) // i64.extend8_s
		}
		return cat(g.expr(i32, d), op(0xad)) // i64.extend_i32_u
	}
	return cat(g.expr(i64, d), op(0xb9)) // f64.convert_i64_s
}

func (g *generator) leaf(t byte) []byte {
	g.room--
	switch t {
	case i32:
		switch g.pick(4) {
		case 0, 1:
			return constI32(int32(int8(g.pick(256))))
		case 2:
			return op(globalGet, globalI32)
		}
	case i64:
		switch g.pick(3) {
		case 0:
			return cat(op(0x42), sleb(int64(int8(g.pick(256)))))
		case 1:
			return op(globalGet, globalI64)
		}
	case f64:
		switch g.pick(3) {
		case 0:
			return op(0x44, 0, 0, 0, 0, 0, byte(g.pick(256)), byte(g.pick(256)), 0x40)
		case 1:
			return op(globalGet, globalF64)
		}
	}
	return cat(op(localGet), g.localOf(t))
}
