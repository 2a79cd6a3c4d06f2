package redis

import (
	"fmt"

	"github.com/loophost/loophost/backends/redis/internal/format"
)

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

// storedUnit is a unit with what the script wrote beside it.
type storedUnit struct {
	format.Unit
	log uint64 // length of the log with it
}

// unit reads the fields of a history element, at revision.
func (r reply) unit(revision uint64) (u storedUnit, err error) {
	if len(r) < 6 || r.text(0) != "unit" || r.text(2) != "sum" || r.text(4) != "log" {
		return u, fmt.Errorf("unit of revision %d: its fields are not those that were written", revision)
	}
	if u.Unit, err = format.ParseUnit(revision, r.text(1), r.text(3)); err != nil {
		return u, err
	}
	if u.log, err = format.ParseNumber(r.text(5)); err != nil {
		return u, fmt.Errorf("unit of revision %d: log length: %w", revision, err)
	}
	return u, nil
}
