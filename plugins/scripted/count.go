package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// countWords answers {"text": "…"} with the text's numbers of lines, words
// (separated by Unicode white space) and characters (code points).
func countWords(args *wire.Reader) pluginapi.ToolOutput {
	var text string
	f := args.Fields([]string{"text"})
	for _, ok := f.Next(); ok; _, ok = f.Next() {
		text = args.Text()
	}
	if err := args.End(); err != nil {
		return guest.Refuse("the arguments are not {\"text\": \"…\"}: " + err.Error())
	}
	if !f.Has(0) {
		return guest.Refuse("the argument text is missing")
	}
	lines := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	words := 0
	for range strings.FieldsSeq(text) {
		words++
	}
	return guest.Answer(`{"lines":` + strconv.Itoa(lines) + `,"words":` + strconv.Itoa(words) +
		`,"characters":` + strconv.Itoa(utf8.RuneCountInString(text)) + `}`)
}
