package wire

import "math"

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Number takes a number and gives its literal.
func (r *Reader) Number() string {
	r.peek()
	start := r.pos
	if r.at(r.pos) && r.s[r.pos] == '-' {
		r.pos++
	}
	switch {
	case r.at(r.pos) && r.s[r.pos] == '0':
		r.pos++
	case !r.digits():
		return ""
	}
	if r.at(r.pos) && r.s[r.pos] == '.' {
		r.pos++
		if !r.digits() {
			return ""
		}
	}
	if r.at(r.pos) && (r.s[r.pos] == 'e' || r.s[r.pos] == 'E') {
		r.pos++
		if r.at(r.pos) && (r.s[r.pos] == '+' || r.s[r.pos] == '-') {
			r.pos++
		}
		if !r.digits() {
			return ""
		}
	}
	if r.err != nil {
		return ""
	}
	return r.s[start:r.pos]
}

// digits takes one or more digits.
func (r *Reader) digits() bool {
	start := r.pos
	for r.at(r.pos) {
		i := digitsEnd(r.s, r.pos)
		more := i == len(r.s) && i > r.pos // the number may cross the end of the front
		r.pos = i
		if !more {
			break
		}
	}
	if r.pos == start {
		r.unexpected("a digit")
		return false
	}
	return true
}

// Uint64 takes a whole number that is written without fraction or exponent.
func (r *Reader) Uint64() uint64 { return r.integer(math.MaxUint64) }

// Uint32 is Uint64 with a smaller bound.
func (r *Reader) Uint32() uint32 { return uint32(r.integer(math.MaxUint32)) }

// Int64 takes a whole number with an optional sign.
func (r *Reader) Int64() int64 {
	if r.peek() != '-' {
		return int64(r.integer(math.MaxInt64))
	}
	start := r.pos
	lit := r.Number()
	if r.err != nil {
		return 0
	}
	v, ok := parseUint(lit[1:], 1<<63)
	if !ok {
		r.failAt(start, "want a whole number of 64 bits")
		return 0
	}
	return -int64(v)
}

func (r *Reader) integer(limit uint64) uint64 {
	r.peek()
	start := r.pos
	lit := r.Number()
	if r.err != nil {
		return 0
	}
	v, ok := parseUint(lit, limit)
	if !ok {
		r.failAt(start, "want a whole number in range")
		return 0
	}
	return v
}

func parseUint(lit string, limit uint64) (uint64, bool) {
	var v uint64
	for i := range len(lit) {
		if !isDigit(lit[i]) {
			return 0, false
		}
		d := uint64(lit[i] - '0')
		if v > (limit-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}
