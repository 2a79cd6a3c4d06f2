package format

import (
	"encoding/json"

	"github.com/loophost/loophost/host/store"
)

// metaRoom is what a commit's meta line takes at most, with the usual names.
const metaRoom = 640

// appendTo appends m as encoding/json writes it. It is written out because every
// commit has one, and reflection costs more there than the flushed bytes' checksums.
func (m Meta) appendTo(dst []byte) ([]byte, error) {
	o := object{b: append(dst, '{')}
	o.text("time", m.Time)
	if m.Key != nil {
		o.value("key", m.Key)
	}
	if m.Birth != 0 {
		o.text("birth", m.Birth.String())
	}
	o.text("commit", m.Commit)
	o.text("content", m.Content)
	o.text("level", m.Level)
	if m.Fence != nil {
		o.name("fence")
		o.fence(*m.Fence)
	}
	o.text("parts", m.Parts)
	return append(o.b, '}'), o.err
}

// object appends the members of a JSON object.
type object struct {
	b   []byte
	err error
}

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// text appends a member, unless it is empty.
func (o *object) text(name, s string) {
	if s != "" {
		o.name(name)
		o.string(s)
	}
}

// value appends a member of any type.
func (o *object) value(name string, v any) {
	o.name(name)
	b, err := json.Marshal(v)
	o.b = append(o.b, b...)
	if o.err == nil {
		o.err = err
	}
}

func (o *object) fence(f store.Fence) {
	o.b = append(o.b, '{')
	o.name("birth")
	o.string(f.Birth.String())
	o.name("generation")
	o.string(f.Generation)
	o.name("owner")
	o.string(f.Owner)
	o.name("run")
	o.string(f.Run)
	o.b = append(o.b, '}')
}

func (o *object) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, err := json.Marshal(s) // escapes, and replaces what is no UTF-8
			o.b = append(o.b, b...)
			if o.err == nil {
				o.err = err
			}
			return
		}
	}
	o.b = append(append(append(o.b, '"'), s...), '"')
}
