package meter

// elements re-encodes the three forms of segments that exist without reference
// types: active, passive, and active with a table index.
func (w *rewriter) elements(r *reader, dst []byte) []byte {
	n := r.count(3)
	dst = appendU32(dst, uint32(n))
	for range n {
		at := r.pos
		form := r.u32()
		if form > 2 {
			r.fail(ErrUnsupported, at, "element segment of form %d", form)
		}
		if form == 2 {
			r.zero("table")
		}
		if form != 1 {
			w.constExpr(r)
		}
		if form != 0 {
			r.zero("element kind")
		}
		funcs := r.count(1)
		if r.err != nil {
			break
		}
		dst = append(dst, r.buf[at:r.pos]...)
		for i := 0; i < funcs && r.err == nil; i++ {
			dst = appendU32(dst, w.moved(r.index("function", w.funcs())))
		}
	}
	return dst
}

// data copies the segments; they name nothing that moves.
func (w *rewriter) data(r *reader, dst []byte) []byte {
	return vector(r, dst, r.count(2), 0, func() {
		at := r.pos
		form := r.u32()
		if form > 2 {
			r.fail(ErrUnsupported, at, "data segment of form %d", form)
		}
		if form == 2 {
			r.zero("memory")
		}
		if form != 1 {
			w.constExpr(r)
		}
		r.take(r.u32())
	})
}
