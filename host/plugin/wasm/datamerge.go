package wasm

import "slices"

// maxGap is the longest run of zeros between two data segments that is cheaper to
// store than a segment of its own is to read, check and apply.
const maxGap = 64

// dataSegment is what an active segment puts into memory.
type dataSegment struct {
	at   uint64
	data []byte
}

// mergeData gives a valid module fewer data segments where that changes nothing: the
// Go linker leaves out every short run of zeros, which makes some 28,000 segments of
// a plugin, each applied to each new instance. It is given back as it is when
//
//   - instructions may name segments by their index, for which a module needs a
//     data count section,
//   - a segment is passive, or its place isn't a constant,
//   - two segments overlap, so that their order means something, or
//   - a segment is empty: it writes nothing, but its place is checked.
//
// The memory is the module's own and zero before, as the ABI demands, and the last
// byte that is written stays the same, so instantiation fails for the same memories.
func mergeData(module []byte) []byte {
	secs, err := sections(module)
	if err != nil {
		return module
	}
	at := slices.IndexFunc(secs, func(s section) bool { return s.id == secData })
	if at < 0 || slices.ContainsFunc(secs, func(s section) bool { return s.id == secDataCount }) {
		return module
	}
	segs, ok := activeSegments(secs[at].body)
	if !ok {
		return module
	}
	body, ok := merged(segs)
	if !ok {
		return module
	}
	out := append(make([]byte, 0, len(module)), preamble...)
	for i, s := range secs {
		if i != at {
			out = append(out, s.raw...)
			continue
		}
		out = appendU32(append(out, secData), uint32(len(body)))
		out = append(out, body...)
	}
	return out
}

// activeSegments reads a data section in which every segment has a constant place.
func activeSegments(body []byte) (segs []dataSegment, ok bool) {
	r := &reader{b: body}
	n := r.count()
	segs = make([]dataSegment, 0, n)
	for range n {
		form := r.u32()
		if form == 2 {
			form = r.u32() // memory 0
		}
		if form != 0 || r.byte() != 0x41 {
			return nil, false
		}
		place := r.i32()
		if r.byte() != 0x0b {
			return nil, false
		}
		segs = append(segs, dataSegment{at: uint64(place), data: r.take(r.u32())})
	}
	return segs, r.err == nil && r.off == len(r.b)
}

// i32 reads a signed LEB128 of 32 bits, as the place in memory that it is.
func (r *reader) i32() uint32 {
	var v uint32
	for shift := uint(0); shift < 35; shift += 7 {
		c := r.byte()
		v |= uint32(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 && shift+7 < 32 {
				v |= ^uint32(0) << (shift + 7)
			}
			return v
		}
	}
	r.fail(errLong)
	return 0
}

// appendI32 undoes i32.
func appendI32(b []byte, v uint32) []byte {
	for s := int32(v); ; s >>= 7 {
		c := byte(s & 0x7f)
		if s>>6 == 0 || s>>6 == -1 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// merged is a data section with the content of segs, which it sorts.
func merged(segs []dataSegment) (body []byte, ok bool) {
	slices.SortFunc(segs, func(a, b dataSegment) int { return int(int64(a.at) - int64(b.at)) })
	var runs [][]dataSegment
	size, end := 0, uint64(0)
	for i, s := range segs {
		if len(s.data) == 0 || s.at < end {
			return nil, false
		}
		if i == 0 || s.at-end > maxGap {
			runs = append(runs, segs[i:i])
		}
		last := len(runs) - 1
		runs[last] = runs[last][:len(runs[last])+1]
		size += len(s.data) + maxGap
		end = s.at + uint64(len(s.data))
	}
	body = appendU32(make([]byte, 0, size), uint32(len(runs)))
	for _, run := range runs {
		first, last := run[0], run[len(run)-1]
		body = appendI32(append(body, 0, 0x41), uint32(first.at))
		body = appendU32(append(body, 0x0b), uint32(last.at+uint64(len(last.data))-first.at))
		at := first.at
		for _, s := range run {
			body = append(body, make([]byte, s.at-at)...)
			body = append(body, s.data...)
			at = s.at + uint64(len(s.data))
		}
	}
	return body, true
}
