package meter

// The cost of a check is the longest path through the operators it pays for,
// from the function's entry or the loop's header to wherever that part of the
// code is left. Structured control flow makes one pass enough: branches go to
// the end of an enclosing block, or back to a loop header, where the next check
// pays. A sum over all operators would be a bound too, but a loose one: Go
// compiles a function into a loop around a jump table, of which one pass runs a
// sliver.

// block is an open block of the input.
type block struct {
	opener byte
	payer  int32 // who pays for what is in it, an index into payers
	entry  int32 // cost of the path to an if; what its else starts with
	exit   int32 // cost of the longest path that ends in a branch to its end
}

// payer is the check at a function's entry or a loop's header.
type payer struct {
	at   int   // where in the output its cost goes
	path int32 // cost of the longest path to the operator that is read
	cost int32 // cost of the longest path so far
}

// dead is the cost of a path that doesn't exist: behind a branch, for example.
const dead = -1

func (b *body) top() *block     { return &b.blocks[len(b.blocks)-1] }
func (b *body) payer() *payer   { return &b.payers[b.top().payer] }
func (b *body) endOfPath()      { b.payer().path = dead }
func (b *body) join(path int32) { p := b.payer(); p.path = max(p.path, path) }

// charge puts one operator onto the path.
func (b *body) charge() { b.chargeUnits(1) }

// chargeUnits puts work of so many operators onto the path. A sum that would not
// fit into a check stays at the most that does, which makes every check ask.
func (b *body) chargeUnits(n int32) {
	p := b.payer()
	if p.path == dead {
		return
	}
	p.path = min(p.path+n, maxCost)
	p.cost = max(p.cost, p.path)
}

// enter opens a block. A loop and the function itself come with their payer.
func (b *body) enter(opener byte, payer int32) {
	b.blocks = append(b.blocks, block{opener: opener, payer: payer, entry: dead, exit: dead})
	if opener == opIf {
		b.top().entry = b.payer().path
	}
}

// turn goes from the first arm of an if to the second.
func (b *body) turn() {
	t := b.top()
	t.opener = opElse
	t.exit = max(t.exit, b.payer().path)
	b.payer().path, t.entry = t.entry, dead
}

// leave closes a block.
func (b *body) leave() {
	t := *b.top()
	ends := b.payer().path == dead
	b.blocks = b.blocks[:len(b.blocks)-1]
	switch {
	case len(b.blocks) == 0:
	case t.opener != opLoop:
		b.join(max(t.entry, t.exit))
	case ends:
		// Nothing comes out at the end of the loop; its payer is done, and the
		// one around it waited with the path that led into the loop.
		b.endOfPath()
	}
}

// branch notes a branch to the block that is depth blocks further out.
func (b *body) branch() {
	r := &b.in
	depth := int(r.index("label", len(b.blocks)))
	if r.err != nil || b.payer().path == dead {
		return
	}
	if t := &b.blocks[len(b.blocks)-1-depth]; t.opener != opLoop {
		t.exit = max(t.exit, b.payers[t.payer].path)
	}
}
