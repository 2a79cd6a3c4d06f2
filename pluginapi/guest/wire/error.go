package wire

import "strconv"

// Error says where a JSON text breaks the rules.
type Error struct {
	Offset int    // in bytes, from 0
	Detail string // what was found
}

// Error renders detail and offset.
func (e *Error) Error() string {
	return "json: " + e.Detail + " at byte " + strconv.Itoa(e.Offset)
}
