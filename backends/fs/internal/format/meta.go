package format

import (
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/jsonobject"
)

// metaRoom is what a commit's meta line takes at most, with the usual names.
const metaRoom = 640

// appendTo appends m as encoding/json writes it. It is written out because every
// commit has one, and reflection costs more there than the flushed bytes' checksums.
func (m Meta) appendTo(dst []byte) ([]byte, error) {
	o := jsonobject.Open(dst)
	o.TextIf("time", m.Time)
	if m.Key != nil {
		o.Other("key", m.Key)
	}
	if m.Birth != 0 {
		o.Text("birth", m.Birth.String())
	}
	o.TextIf("commit", m.Commit)
	o.TextIf("content", m.Content)
	o.TextIf("level", m.Level)
	if m.Fence != nil {
		o.Nest("fence", func(b []byte) ([]byte, error) { return appendFence(b, m.Fence) })
	}
	o.TextIf("parts", m.Parts)
	return o.Close()
}

func appendFence(b []byte, f *store.Fence) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("birth", f.Birth.String())
	o.Text("generation", f.Generation)
	o.Text("owner", f.Owner)
	o.Text("run", f.Run)
	return o.Close()
}
