package host

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// filled draws a value for every field, so that one which is added to a document
// and forgotten by its encoder is found.
func filled(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			filled(t, v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(t, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":[1,"<"]}`))
			return
		}
		n := rapid.IntRange(0, 2).Draw(t, "length")
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			filled(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "plain", "a \"quote\" \\", "<b> & \u2028", "é\u0001\n", "\xff", rapid.String().Draw(t, "text")}).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Max(1<<v.Type().Bits()-1).Draw(t, "uint"))
	case reflect.Interface, reflect.Map:
	default:
		t.Fatalf("%s is of a kind that this test does not know", v.Type())
	}
}

// same compares an encoder with encoding/json.
func same[T any](t *testing.T, encode func([]byte, *T) ([]byte, error)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		var v T
		filled(t, reflect.ValueOf(&v).Elem())
		want, err := json.Marshal(&v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := encode([]byte("before"), &v); err != nil || string(got) != "before"+string(want) {
			t.Fatalf("got %s, %v\nwant before%s", got, err, want)
		}
	})
}

func TestWhatIsEncodedByHandIsWhatEncodingJSONWrites(t *testing.T) {
	t.Run("an entry", func(t *testing.T) {
		same(t, func(b []byte, e *Entry) ([]byte, error) { return appendEntry(b, e, nil) })
	})
	t.Run("a message", func(t *testing.T) { same(t, appendMessage) })
	t.Run("a hook's record", func(t *testing.T) { same(t, appendRecord) })
	t.Run("a checkpoint", func(t *testing.T) { same(t, appendCheckpoint) })
	t.Run("a head", func(t *testing.T) { same(t, appendHead) })
	t.Run("a loop's state", func(t *testing.T) { same(t, appendState) })
}

func TestATimeThatJSONCanNotHoldIsAnError(t *testing.T) {
	e := Entry{Type: EntryRound, Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if data, err := e.Encode(); err == nil {
		t.Errorf("got %s, want an error", data)
	}
}
