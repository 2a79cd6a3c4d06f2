package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rule finds one kind of secret.
type rule struct {
	name    string
	literal string         // the secret itself; "": re finds it
	re      *regexp.Regexp // a group named "secret", if it has one, is what is taken out
	hints   []string       // lower case; a text with none of them is not searched; empty: always
	fits    func(secret string) bool
}

// scrubber takes secrets out of the texts of one document and counts them.
type scrubber struct {
	rules []rule
	total int
	names []string // of the rules that found something
}

// text is s without secrets. Each becomes [redacted:NAME].
func (x *scrubber) text(s string) string {
	if s == "" {
		return s
	}
	lower := strings.ToLower(s) // hints stay true of the original: redacting adds none
	for i := range x.rules {
		r := &x.rules[i]
		switch {
		case r.literal != "":
			if n := strings.Count(s, r.literal); n > 0 {
				s = strings.ReplaceAll(s, r.literal, mark(r.name))
				x.count(r.name, n)
			}
		case len(r.hints) == 0 || slices.ContainsFunc(r.hints, func(h string) bool { return strings.Contains(lower, h) }):
			s = x.replace(s, r)
		}
	}
	return s
}

func (x *scrubber) replace(s string, r *rule) string {
	group := max(r.re.SubexpIndex("secret"), 0)
	var out strings.Builder
	last := 0
	for _, m := range r.re.FindAllStringSubmatchIndex(s, -1) {
		start, end := m[2*group], m[2*group+1]
		if start < 0 || start == end || (r.fits != nil && !r.fits(s[start:end])) {
			continue
		}
		if strings.HasPrefix(s[start:end], markPrefix) {
			continue // another rule's mark, or an earlier call's
		}
		out.WriteString(s[last:start])
		out.WriteString(mark(r.name))
		last = end
		x.count(r.name, 1)
	}
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

const markPrefix = "[redacted:"

func mark(name string) string { return markPrefix + name + "]" }

func (x *scrubber) count(name string, n int) {
	x.total += n
	if !slices.Contains(x.names, name) {
		x.names = append(x.names, name)
	}
}

// summary says how many secrets of which kinds were found.
func (x *scrubber) summary() string {
	return "redacted " + strconv.Itoa(x.total) + ": " + strings.Join(x.names, ", ")
}
