package main

import (
	"errors"
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func TestCountWords(t *testing.T) {
	cases := []struct {
		name, args, want string
		isError          bool
	}{
		{"one line", `{"text": "one two  three"}`, `{"lines":1,"words":3,"characters":14}`, false},
		{"a last line without its end counts", `{"text": "a\nb c"}`, `{"lines":2,"words":3,"characters":5}`, false},
		{"a line's end alone is one line", `{"text": "\n"}`, `{"lines":1,"words":0,"characters":1}`, false},
		{"nothing", `{"text": ""}`, `{"lines":0,"words":0,"characters":0}`, false},
		{"characters are code points", `{"text": "größe 🌊"}`, `{"lines":1,"words":2,"characters":7}`, false},
		{"no text", `{}`, "the argument text is missing", true},
		{"another argument", `{"txt": "a"}`, `the arguments are not {"text": "…"}: json: unknown field "txt" at byte 1`, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := new(guesttest.Host).Tool(newPlugin(), "count_words", c.args)
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != c.want || got.IsError != c.isError {
				t.Errorf("got %q (error %v), want %q (error %v)", got.Text, got.IsError, c.want, c.isError)
			}
		})
	}
}

func TestAnotherToolIsRefused(t *testing.T) {
	_, err := new(guesttest.Host).Tool(newPlugin(), "count_words_2", `{}`)
	var f *pluginapi.Failure
	if !errors.As(err, &f) || f.Kind != pluginapi.FailInvalidRequest {
		t.Errorf("got %v, want a Failure of kind invalid_request", err)
	}
}
