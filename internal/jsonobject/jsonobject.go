// Package jsonobject appends JSON objects by hand, for the few documents that are made
// with every commit: reflection costs more there than the hashing. The bytes are those
// that encoding/json would write; what is rare is left to it.
package jsonobject

import (
	"encoding/json"
	"strconv"
	"time"
)

// Object appends one JSON object, member by member. The zero value is not usable;
// Open makes one. The first error is kept, and Close returns it.
type Object struct {
	b   []byte
	err error // the first one
}

// Open begins an object behind what b holds.
func Open(b []byte) Object { return Object{b: append(b, '{')} }

// Close ends the object and gives the bytes.
func (o *Object) Close() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return append(o.b, '}'), nil
}

// name begins a member; names need no escapes.
func (o *Object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

// Text appends a string. One with anything to escape goes to encoding/json.
func (o *Object) Text(name, value string) {
	for i := range len(value) {
		if c := value[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			o.Other(name, value)
			return
		}
	}
	o.name(name)
	o.b = append(append(append(o.b, '"'), value...), '"')
}

// TextIf is Text, but leaves an empty value out.
func (o *Object) TextIf(name, value string) {
	if value != "" {
		o.Text(name, value)
	}
}

// Number appends a number.
func (o *Object) Number(name string, value uint64) {
	o.name(name)
	o.b = strconv.AppendUint(o.b, value, 10)
}

// NumberIf is Number, but leaves a zero out.
func (o *Object) NumberIf(name string, value uint64) {
	if value != 0 {
		o.Number(name, value)
	}
}

// Signed appends a number that may be negative.
func (o *Object) Signed(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

// Bool appends true or false.
func (o *Object) Bool(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

// Time appends an instant. One outside of the years 0 to 9999 is an error.
func (o *Object) Time(name string, t time.Time) {
	o.name(name)
	o.b = append(o.b, '"')
	b, err := t.AppendText(o.b)
	if err != nil {
		o.fail(err)
		return
	}
	o.b = append(b, '"')
}

// Other leaves a value to encoding/json.
func (o *Object) Other(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		o.fail(err)
		return
	}
	o.Raw(name, data)
}

// Raw appends a value that is JSON already.
func (o *Object) Raw(name string, data []byte) {
	o.name(name)
	o.b = append(o.b, data...)
}

// Nest takes the result of an append function for a value.
func (o *Object) Nest(name string, value func([]byte) ([]byte, error)) {
	o.name(name)
	b, err := value(o.b)
	if err != nil {
		o.fail(err)
		return
	}
	o.b = b
}

func (o *Object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}
