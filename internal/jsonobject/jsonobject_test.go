package jsonobject_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/loophost/loophost/internal/jsonobject"
)

// document has a member of every kind that is appended by hand.
type document struct {
	Text   string          `json:"text"`
	Some   string          `json:"some,omitempty"`
	Number uint64          `json:"number"`
	Count  uint64          `json:"count,omitempty"`
	Signed int64           `json:"signed"`
	Bool   bool            `json:"bool"`
	Time   time.Time       `json:"time"`
	Raw    json.RawMessage `json:"raw"`
	Other  []string        `json:"other"`
	Nested struct {
		Text string `json:"text"`
	} `json:"nested"`
}

func (d *document) append(b []byte) ([]byte, error) {
	o := jsonobject.Open(b)
	o.Text("text", d.Text)
	o.TextIf("some", d.Some)
	o.Number("number", d.Number)
	o.NumberIf("count", d.Count)
	o.Signed("signed", d.Signed)
	o.Bool("bool", d.Bool)
	o.Time("time", d.Time)
	o.Raw("raw", d.Raw)
	o.Other("other", d.Other)
	o.Nest("nested", func(b []byte) ([]byte, error) {
		o := jsonobject.Open(b)
		o.Text("text", d.Nested.Text)
		return o.Close()
	})
	return o.Close()
}

func FuzzObject(f *testing.F) {
	f.Add("", "plain", uint64(0), int64(-1), true, int64(0))
	f.Add("a \"quote\" \\", "<b> & \u2028\x00\xff", uint64(1<<63), int64(1<<40), false, int64(1<<33))
	f.Fuzz(func(t *testing.T, text, some string, number uint64, signed int64, yes bool, seconds int64) {
		d := document{
			Text: text, Some: some, Number: number, Count: number / 2, Signed: signed, Bool: yes,
			Time: time.Unix(seconds%(1<<36), 5).UTC(), Raw: json.RawMessage(`{"a":1}`), Other: []string{some, text},
		}
		d.Nested.Text = text
		want, wantErr := json.Marshal(&d)
		got, err := d.append([]byte("before"))
		if (err != nil) != (wantErr != nil) || err == nil && string(got) != "before"+string(want) {
			t.Errorf("got %s, %v\nwant before%s, %v", got, err, want, wantErr)
		}
	})
}

func TestTheFirstErrorIsKept(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	o := jsonobject.Open(nil)
	o.Nest("a", func([]byte) ([]byte, error) { return nil, first })
	o.Nest("b", func([]byte) ([]byte, error) { return nil, second })
	if b, err := o.Close(); !errors.Is(err, first) || b != nil {
		t.Errorf("got %s, %v, want nothing and the first error", b, err)
	}
}
