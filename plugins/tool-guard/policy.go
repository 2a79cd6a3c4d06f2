package main

import (
	"errors"
	"path"
	"regexp"
	"strconv"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

// policy is the plugin's configuration.
type policy struct {
	rules         []rule
	denyByDefault bool // what happens where no rule matches; otherwise there is no opinion
}

// rule matches a call whose tool and arguments all fit.
type rule struct {
	tool      string // a glob of path.Match; "": every tool
	arguments []condition
	action    pluginapi.Action
	reason    string
	set       []member
}

type condition struct {
	name string
	re   *regexp.Regexp
}

// matches reports whether the rule is for this call. An argument that is absent fits no expression.
func (r *rule) matches(tool string, args []member) bool {
	if r.tool != "" {
		// The pattern was checked when the configuration was read.
		if ok, err := path.Match(r.tool, tool); err != nil || !ok {
			return false
		}
	}
	for _, c := range r.arguments {
		if m, ok := find(args, c.name); !ok || !c.re.MatchString(m.text()) {
			return false
		}
	}
	return true
}

func decodeConfig(config string) (policy, error) {
	p, err := readPolicy(wire.NewReader(config))
	if err != nil {
		return policy{}, errors.New("the configuration of tool-guard: " + err.Error())
	}
	return p, nil
}

func readPolicy(r *wire.Reader) (policy, error) {
	var p policy
	f := r.Fields([]string{"rules", "default"})
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			for r.Array(); r.Elem(); {
				ru, err := readRule(r)
				if err != nil {
					return policy{}, errors.New("rule " + strconv.Itoa(len(p.rules)+1) + ": " + err.Error())
				}
				p.rules = append(p.rules, ru)
			}
		case 1:
			switch v := r.Text(); v {
			case "deny":
				p.denyByDefault = true
			case "allow":
			default:
				r.Fail(`default is not "allow" or "deny"`)
			}
		}
	}
	return p, r.End()
}

var ruleNames = []string{"tool", "arguments", "action", "reason", "set"}

func readRule(r *wire.Reader) (rule, error) {
	var ru rule
	var conditions []member
	f := r.Fields(ruleNames)
	for i, ok := f.Next(); ok; i, ok = f.Next() {
		switch i {
		case 0:
			ru.tool = r.Text()
		case 1:
			conditions = takeMembers(r)
		case 2:
			ru.action = pluginapi.Action(r.Text())
		case 3:
			ru.reason = r.Text()
		case 4:
			ru.set = takeMembers(r)
		}
	}
	if err := r.Err(); err != nil {
		return rule{}, err
	}
	if _, err := path.Match(ru.tool, ""); err != nil {
		return rule{}, errors.New("tool: " + strconv.Quote(ru.tool) + " is no glob")
	}
	for _, c := range conditions {
		text := c.text()
		if c.raw == text {
			return rule{}, errors.New("arguments: " + c.name + " is not a string with a regular expression")
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return rule{}, errors.New("arguments: " + c.name + ": " + err.Error())
		}
		ru.arguments = append(ru.arguments, condition{name: c.name, re: re})
	}
	switch ru.action {
	case pluginapi.Allow, pluginapi.Deny, pluginapi.Ask, pluginapi.Mutate:
	case "":
		return rule{}, errors.New("action is missing")
	default:
		return rule{}, errors.New("action " + strconv.Quote(string(ru.action)) + " is not allow, deny, ask or mutate")
	}
	if (ru.action == pluginapi.Mutate) != (len(ru.set) > 0) {
		return rule{}, errors.New(`"set" belongs to the action mutate, and mutate needs it`)
	}
	return ru, nil
}
