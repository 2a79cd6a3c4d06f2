//go:build !wasip1

// This file imports encoding/json, which a module does without.

package pluginapi

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// maxVersionBytes bounds a plugin's own version.
const maxVersionBytes = 64

// Validate checks every rule that the manifest's fields state. The error is an
// *InvalidError for the first rule that is broken.
func (m Manifest) Validate() error { return m.check().err("manifest") }

func (m Manifest) check() broken {
	for _, rule := range []func() broken{m.checkIdentity, m.checkAPI, m.checkKinds, m.checkHooks, m.checkTools, m.checkCapabilities, m.checkRuntime} {
		if b := rule(); b != (broken{}) {
			return b
		}
	}
	return broken{}
}

func (m Manifest) checkIdentity() broken {
	if m.Schema != 1 {
		return broken{"schema", strconv.Itoa(m.Schema) + "; only 1 is known"}
	}
	if !ValidPluginName(m.Name) {
		return broken{"name", strconv.Quote(m.Name) + "; want 1–64 of a–z, 0–9, '-', '_'"}
	}
	if m.Version == "" || len(m.Version) > maxVersionBytes || !utf8.ValidString(m.Version) {
		return broken{"version", strconv.Quote(m.Version) + "; want 1–" + strconv.Itoa(maxVersionBytes) + " bytes of UTF-8"}
	}
	if !utf8.ValidString(m.Description) {
		return broken{"description", "not valid UTF-8"}
	}
	return broken{}
}

func (m Manifest) checkAPI() broken {
	if m.APIMin < 1 {
		return broken{"api_min", strconv.Itoa(m.APIMin) + "; the first API version is 1"}
	}
	if m.APIMax < m.APIMin {
		return broken{"api_max", strconv.Itoa(m.APIMax) + " is below api_min " + strconv.Itoa(m.APIMin)}
	}
	if m.APIMin > APIVersion {
		return broken{"api_min", "the plugin needs API version " + strconv.Itoa(m.APIMin) + " or later, this host speaks " + strconv.Itoa(APIVersion) + "; use a newer host or an older plugin"}
	}
	if m.APIMax < APIVersion {
		return broken{"api_max", "the plugin speaks API versions up to " + strconv.Itoa(m.APIMax) + ", this host speaks " + strconv.Itoa(APIVersion) + "; use a newer plugin"}
	}
	return broken{}
}

func (m Manifest) checkKinds() broken {
	if len(m.Kinds) == 0 {
		return broken{"kinds", "empty; want at least one of hook, provider, tool"}
	}
	seen := map[Kind]bool{}
	for i, k := range m.Kinds {
		if k != KindHook && k != KindProvider && k != KindTool {
			return broken{at("kinds", i), strconv.Quote(string(k)) + "; want hook, provider or tool"}
		}
		if seen[k] {
			return broken{at("kinds", i), strconv.Quote(string(k)) + " is listed twice"}
		}
		seen[k] = true
	}
	switch {
	case seen[KindHook] && len(m.Hooks) == 0:
		return broken{"hooks", "empty, but kinds has hook"}
	case !seen[KindHook] && len(m.Hooks) > 0:
		return broken{"hooks", "present, but kinds lacks hook"}
	case seen[KindTool] && len(m.Tools) == 0:
		return broken{"tools", "empty, but kinds has tool"}
	case !seen[KindTool] && len(m.Tools) > 0:
		return broken{"tools", "present, but kinds lacks tool"}
	}
	return broken{}
}

func (m Manifest) checkHooks() broken {
	seen := map[HookPoint]bool{}
	for i, d := range m.Hooks {
		if b := d.check(); b != (broken{}) {
			return b.under(at("hooks", i))
		}
		if seen[d.Point] {
			return broken{at("hooks", i) + ".point", strconv.Quote(string(d.Point)) + " is listed twice"}
		}
		seen[d.Point] = true
	}
	return broken{}
}

func (m Manifest) checkTools() broken {
	seen := map[string]bool{}
	for i, t := range m.Tools {
		if b := t.check(); b != (broken{}) {
			return b.under(at("tools", i))
		}
		if seen[t.Name] {
			return broken{at("tools", i) + ".name", strconv.Quote(t.Name) + " is listed twice"}
		}
		seen[t.Name] = true
	}
	return broken{}
}

func (m Manifest) checkCapabilities() broken {
	seen := map[Capability]bool{}
	for i, c := range m.Capabilities {
		if c != CapKV && c != CapClock && c != CapRandom && c != CapWorkspace {
			return broken{at("capabilities", i), strconv.Quote(string(c)) + "; want kv, clock, random or workspace"}
		}
		if seen[c] {
			return broken{at("capabilities", i), strconv.Quote(string(c)) + " is listed twice"}
		}
		seen[c] = true
	}
	return broken{}
}

func (m Manifest) checkRuntime() broken {
	switch m.Lease {
	case "", LeaseFresh, LeasePooled, LeaseSession:
	default:
		return broken{"lease", strconv.Quote(string(m.Lease)) + "; want fresh, pooled or session"}
	}
	if l := m.Limits; l != nil {
		switch {
		case l.MemoryPages < 0:
			return broken{"limits.memory_pages", strconv.Itoa(l.MemoryPages) + "; want 0 or more"}
		case l.OutputBytes < 0:
			return broken{"limits.output_bytes", strconv.FormatInt(l.OutputBytes, 10) + "; want 0 or more"}
		case l.TimeoutMS < 0:
			return broken{"limits.timeout_ms", strconv.FormatInt(l.TimeoutMS, 10) + "; want 0 or more"}
		}
	}
	if len(m.Config) > 0 && !isObject(m.Config) {
		return broken{"config", "want a JSON Schema, a JSON object; leave it out where the plugin takes no configuration"}
	}
	return broken{}
}

// Validate checks one subscription: a known point, a known on_error that means
// something there, mutates only where the point has a document to rewrite.
func (d HookDecl) Validate() error { return d.check().err("hook declaration") }

func (d HookDecl) check() broken {
	if acc := d.Point.Observer() || len(accepts[d.Point]) > 0; !acc {
		if p, alias := ParseHookPoint(string(d.Point)); alias {
			return broken{"point", strconv.Quote(string(d.Point)) + " is an alias; its name is " + strconv.Quote(string(p))}
		}
		return broken{"point", strconv.Quote(string(d.Point)) + " is no hook point"}
	}
	switch d.OnError {
	case OnErrorDefault, OnErrorAllow:
	case OnErrorDeny, OnErrorAbort:
		if !d.Point.Accepts(Action(d.OnError)) {
			return broken{"on_error", strconv.Quote(string(d.OnError)) + " means nothing at " + string(d.Point) + ", which accepts " + acceptedAt(d.Point)}
		}
	default:
		return broken{"on_error", strconv.Quote(string(d.OnError)) + "; want deny, allow, abort, or nothing for the point's default"}
	}
	if d.Mutates && !d.Point.MayMutate() {
		return broken{"mutates", string(d.Point) + " has no document that a hook may rewrite"}
	}
	return broken{}
}

// Validate checks a tool's name and that its schema is a JSON object; it does not compile the schema.
func (t ToolSpec) Validate() error { return t.check().err("tool") }

func (t ToolSpec) check() broken {
	if !ValidToolName(t.Name) {
		return broken{"name", strconv.Quote(t.Name) + "; want 1–64 of A–Z, a–z, 0–9, '-', '_'"}
	}
	if !utf8.ValidString(t.Description) {
		return broken{"description", "not valid UTF-8"}
	}
	if !isObject(t.InputSchema) {
		return broken{"input_schema", "want a JSON Schema of the arguments, a JSON object"}
	}
	return broken{}
}

func isObject(raw json.RawMessage) bool { return opensObject(raw) && json.Valid(raw) }

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
