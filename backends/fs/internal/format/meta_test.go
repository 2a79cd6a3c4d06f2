package format

import (
	"encoding/json"
	"testing"

	"github.com/loophost/loophost/host/store"
)

// sameMeta compares a meta line with what encoding/json makes of it.
func sameMeta(t *testing.T, m Meta) {
	t.Helper()
	got, err := m.appendTo(nil)
	want, wantErr := json.Marshal(m)
	if string(got) != string(want) || (err == nil) != (wantErr == nil) {
		t.Errorf("got meta line %s, %v, want %s, %v", got, err, want, wantErr)
	}
}

func TestAMetaLineIsWhatTheJSONEncoderWrites(t *testing.T) {
	key := store.SessionKey("<a & \"b\"> \u2028 \xff\x00é\\")
	for _, m := range []Meta{
		{},
		{Time: "2026-01-02T03:04:05.678Z"},
		{Key: &store.Key{}},
		{Time: "t", Key: &key, Birth: -1, Commit: "c", Content: "n", Level: "power", Parts: "jjb"},
		{Birth: 1 << 62, Fence: &store.Fence{}},
		{Commit: "x", Fence: &store.Fence{Birth: 1, Generation: "g", Owner: key.ID, Run: "r\x7f"}},
	} {
		sameMeta(t, m)
	}
}

func TestAFrameIsAppendedBehindWhatIsThere(t *testing.T) {
	for _, room := range []int{0, 4, 10_000} {
		first, second := Header{Kind: Commit}, Header{Kind: Commit}
		alone, err := Encode(&first, Meta{Commit: "x"}, []byte("{}"), []byte("\n"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendFrame(append(make([]byte, 0, room), "what"...), &second, Meta{Commit: "x"}, []byte("{}"), []byte("\n"))
		if err != nil || string(got) != "what"+string(alone) || first != second {
			t.Errorf("room for %d bytes: got %q and %+v, %v, want it behind %q, and %+v", room, got, second, err, "what", first)
		}
	}
}
