package scope_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket/scope"
)

func headSeeds() [][]byte {
	h := scope.Head{Schema: scope.HeadSchema, Binding: bound}
	empty, _ := h.Encode()
	hash := strings.Repeat("0a", 32)
	h.Seq, h.Tip, h.LogBytes, h.AuthorityEpoch, h.Coordinator = 1<<63, hash, 99, 3, `a "<host>"`
	h.Snapshot = &scope.Snapshot{Seq: 7, Tip: hash, LogBytes: 9, Bytes: 1, Records: 1, SHA256: hash}
	full, _ := h.Encode()
	return [][]byte{empty, full}
}

// FuzzDecodeHead: what is taken has one form, and is written back as it was.
func FuzzDecodeHead(f *testing.F) {
	for _, seed := range headSeeds() {
		f.Add(seed)
	}
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":1,"seq":1,"seq":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := scope.DecodeHead(data)
		if err != nil {
			if kind := store.KindOf(err); kind != store.ErrCorrupt && kind != store.ErrUnsupported {
				t.Errorf("got the kind %v of %v, want corrupt or unsupported", kind, err)
			}
			return
		}
		if again, err := h.Encode(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("got %s, %v, want %s", again, err, data)
		}
	})
}

func TestAHeadThatIsNotWholeIsRefused(t *testing.T) {
	full := string(headSeeds()[1])
	for name, c := range map[string]struct {
		old, now string
		want     error
	}{
		"another schema":             {`"schema":1`, `"schema":2`, store.ErrUnsupported},
		"an unknown member":          {`"schema":1`, `"schema":1,"x":1`, store.ErrCorrupt},
		"a missing member":           {`"schema":1,`, ``, store.ErrUnsupported},
		"a missing count":            {`"log_bytes":99,`, ``, store.ErrCorrupt},
		"a space":                    {`{`, `{ `, store.ErrCorrupt},
		"a tip that is no hash":      {`"tip":"0a`, `"tip":"0A`, store.ErrCorrupt},
		"a snapshot after the head":  {`"seq":7`, `"seq":9223372036854775809`, store.ErrCorrupt},
		"a snapshot without records": {`"records":1`, `"records":0`, store.ErrCorrupt},
		"a scope without id":         {`"scope_id":"work"`, `"scope_id":""`, store.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(full, c.old, c.now, 1)
			if bad == full {
				t.Fatalf("%s is not in %s", c.old, full)
			}
			_, err := scope.DecodeHead([]byte(bad))
			wantKind(t, "decoding", err, c.want)
		})
	}
	if _, err := scope.DecodeHead([]byte(full)); err != nil {
		t.Errorf("the whole one: %v", err)
	}
}
