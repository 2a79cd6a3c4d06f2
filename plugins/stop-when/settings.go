package main

import (
	"errors"
	"regexp"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// settings is the plugin's configuration; at least one of the two is set.
type settings struct {
	pattern         *regexp.Regexp // nil: not looked for
	unchangedRounds uint32         // 0: not counted
}

func decodeConfig(config string) (settings, error) {
	var s settings
	var pattern string
	r := wire.NewReader(config)
	f := r.Fields([]string{"pattern", "unchanged_rounds"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			if pattern = r.Text(); pattern == "" {
				r.Fail("pattern is empty and would match everything")
			}
		case 1:
			if s.unchangedRounds = r.Uint32(); s.unchangedRounds == 0 {
				r.Fail("unchanged_rounds is not 1 or more")
			}
		}
	}
	if err := r.End(); err != nil {
		return settings{}, errors.New("the configuration of stop-when: " + err.Error())
	}
	if pattern == "" && s.unchangedRounds == 0 {
		return settings{}, errors.New("the configuration of stop-when has neither pattern nor unchanged_rounds; set one")
	}
	if pattern != "" {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return settings{}, errors.New("the configuration of stop-when: pattern: " + err.Error())
		}
		s.pattern = re
	}
	return s, nil
}

// appears says where the pattern is found in the round's answer or results.
func (s settings) appears(doc *pluginapi.RoundEndDoc) (where string, ok bool) {
	if s.pattern == nil {
		return "", false
	}
	if s.pattern.MatchString(doc.Message.Text) {
		return "the answer", true
	}
	for i := range doc.Results {
		if s.pattern.MatchString(doc.Results[i].Text) {
			return "the result of the tool " + doc.Results[i].Name, true
		}
	}
	return "", false
}
