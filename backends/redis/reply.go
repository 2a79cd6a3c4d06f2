package redis

// reply is what a script answers: a verdict, then its values.
type reply []any

// verdict is the first word.
func (r reply) verdict() string { return r.text(0) }

// text is the value at i; "" for nil and for what is no text.
func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	s, ok := r[i].(string)
	if !ok {
		return ""
	}
	return s
}

// list is the list at i.
func (r reply) list(i int) reply {
	if i >= len(r) {
		return nil
	}
	l, ok := r[i].([]any)
	if !ok {
		return nil
	}
	return l
}

// number is the integer at i, -1 for anything else.
func (r reply) number(i int) int64 {
	if i >= len(r) {
		return -1
	}
	n, ok := r[i].(int64)
	if !ok {
		return -1
	}
	return n
}
