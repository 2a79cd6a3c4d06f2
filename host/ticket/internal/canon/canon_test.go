package canon_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

func TestMarshalHasOneForm(t *testing.T) {
	type inner struct {
		Z string         `json:"z"`
		A map[string]int `json:"a"`
	}
	got, err := canon.Marshal(struct {
		N uint64 `json:"n"`
		B inner  `json:"b"`
		S string `json:"s"`
	}{math.MaxUint64, inner{"<a href=\"x\">&\u2028", map[string]int{"y": 2, "x": 1}}, "\u0000é"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":{"a":{"x":1,"y":2},"z":"<a href=\"x\">&` + "\u2028" + `"},"n":18446744073709551615,"s":"\u0000é"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := canon.Marshal("\xff"); err == nil {
		t.Error("invalid UTF-8 was written; want an error")
	}
}

func TestHashIsSHA256InHex(t *testing.T) {
	if got, want := canon.Hash([]byte("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzReform(f *testing.F) {
	f.Add([]byte(`{"b":[1,{"d":1,"c":18446744073709551615}],"a":"\u003c"}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := canon.Reform(bytes.Clone(data))
		if err != nil {
			return
		}
		twice, err := canon.Reform(bytes.Clone(once))
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("a canonical form changed: %s, then %s (%v)", once, twice, err)
		}
		var v any
		if err := strictjson.Unmarshal(once, &v); err != nil {
			t.Errorf("strict decoding refuses the canonical form %s: %v", once, err)
		}
	})
}
