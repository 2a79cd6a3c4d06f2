package pluginapi

// ValidPluginName reports whether s can name a plugin: 1–64 of a–z, 0–9, '-', '_'.
func ValidPluginName(s string) bool {
	return len(s) <= MaxPluginNameBytes && nameOf(s, false)
}

// ValidToolName reports whether s can name a tool: 1–64 of A–Z, a–z, 0–9, '-', '_'.
func ValidToolName(s string) bool {
	return len(s) <= MaxToolNameBytes && nameOf(s, true)
}

func nameOf(s string, upper bool) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case upper && 'A' <= c && c <= 'Z':
		default:
			return false
		}
	}
	return s != ""
}

// UnmarshalText reads a point's name or one of its aliases, so that a decoded
// document holds only the names of this package. Any other text is kept as it
// is, for Validate to name it.
func (p *HookPoint) UnmarshalText(text []byte) error {
	point, known := ParseHookPoint(string(text))
	if !known {
		point = HookPoint(text)
	}
	*p = point
	return nil
}
