package main

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// minLiteral keeps a literal from taking half of every text away.
const minLiteral = 4

// settings is the plugin's configuration.
type settings struct {
	rules          []rule
	beforeProvider bool
}

func decodeConfig(config string) (settings, error) {
	s, err := readSettings(wire.NewReader(config))
	if err != nil {
		return settings{}, errors.New("the configuration of redact: " + err.Error())
	}
	return s, nil
}

func readSettings(r *wire.Reader) (settings, error) {
	var s settings
	var literals, patterns []named
	var except []string
	builtin := true
	f := r.Fields([]string{"literals", "patterns", "builtin", "except", "before_provider"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			literals = readNamed(r, "text")
		case 1:
			patterns = readNamed(r, "regexp")
		case 2:
			builtin = r.Bool()
		case 3:
			for r.Array(); r.Elem(); {
				except = append(except, r.Text())
			}
		case 4:
			s.beforeProvider = r.Bool()
		}
	}
	if err := r.End(); err != nil {
		return settings{}, err
	}
	own, err := ownRules(literals, patterns)
	if err != nil {
		return settings{}, err
	}
	s.rules = own
	for _, p := range builtins {
		if i := slices.Index(except, p.name); i >= 0 {
			except = slices.Delete(except, i, i+1)
			continue
		}
		if !builtin {
			continue
		}
		ru, err := p.compile()
		if err != nil {
			return settings{}, errors.New("the built-in " + p.name + ": " + err.Error())
		}
		s.rules = append(s.rules, ru)
	}
	if len(except) > 0 {
		return settings{}, errors.New("except: there is no built-in " + strconv.Quote(except[0]))
	}
	return s, nil
}

// named is an entry of literals or patterns.
type named struct{ name, value string }

func readNamed(r *wire.Reader, field string) (list []named) {
	names := []string{"name", field}
	for r.Array(); r.Elem(); {
		var n named
		f := r.Fields(names)
		for i, ok := f.Next(); ok; i, ok = f.Next() {
			switch i {
			case 0:
				n.name = r.Text()
			case 1:
				n.value = r.Text()
			}
		}
		if r.Err() == nil && !validName(n.name) {
			r.Fail("the name of a secret is not 1–32 of a–z, 0–9 and '-'")
		}
		list = append(list, n)
	}
	return list
}

func validName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

// ownRules are the operator's, literals first and the longest of them before all:
// one may be a part of another.
func ownRules(literals, patterns []named) ([]rule, error) {
	var rules []rule
	slices.SortStableFunc(literals, func(a, b named) int { return len(b.value) - len(a.value) })
	for _, l := range literals {
		if len(l.value) < minLiteral {
			// The text stays out of the message: it is a secret.
			return nil, errors.New("literals: the text of " + l.name + " is shorter than " + strconv.Itoa(minLiteral) + " bytes")
		}
		rules = append(rules, rule{name: l.name, literal: l.value})
	}
	for _, p := range patterns {
		re, err := regexp.Compile(p.value)
		if err != nil {
			return nil, errors.New("patterns: " + p.name + ": " + err.Error())
		}
		if re.MatchString("") {
			return nil, errors.New("patterns: " + p.name + " matches the empty text")
		}
		rules = append(rules, rule{name: p.name, re: re})
	}
	return rules, nil
}
