package main

import (
	"strconv"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// maxMembers bounds an object, so that judging one stays quick.
const maxMembers = 1000

// member is one member of a JSON object.
type member struct {
	name string
	raw  string // its value as JSON
}

// text is a string's text; any other value as JSON. Most members are never asked.
func (m member) text() string {
	if r := wire.NewReader(m.raw); r.Kind() == wire.KindText {
		return r.Text()
	}
	return m.raw
}

// readMembers reads an object. A name that comes twice is an error: readers
// differ in which one counts, so a rule could see another value than the tool.
func readMembers(object string) ([]member, error) {
	r := wire.NewReader(object)
	members := takeMembers(r)
	return members, r.End()
}

// takeMembers is readMembers inside a larger document.
func takeMembers(r *wire.Reader) []member {
	var members []member
	r.Object()
	for name, ok := r.Key(); ok; name, ok = r.Key() {
		if _, twice := find(members, name); twice {
			r.Fail("the name " + string(wire.AppendText(nil, name)) + " comes twice")
			break
		}
		if len(members) == maxMembers {
			r.Fail("more than " + strconv.Itoa(maxMembers) + " members")
			break
		}
		members = append(members, member{name: name, raw: r.Raw()})
	}
	return members
}

func find(members []member, name string) (member, bool) {
	for _, m := range members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// overwrite is the object args with the members of set in place of its own.
func overwrite(args, set []member) pluginapi.Raw {
	out := []byte{'{'}
	add := func(m member) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(wire.AppendText(out, m.name), ':')
		out = wire.AppendRaw(out, pluginapi.Raw(m.raw))
	}
	for _, m := range args {
		if with, ok := find(set, m.name); ok {
			m = with
		}
		add(m)
	}
	for _, m := range set {
		if _, have := find(args, m.name); !have {
			add(m)
		}
	}
	return append(out, '}')
}
