package settings

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

var errNotUTF8 = errors.New("it is not valid UTF-8")

// Options are a plugin's configuration by key; each value is JSON.
type Options map[string]json.RawMessage

// JSON is the configuration as one object, nil where there is none.
func (o Options) JSON() []byte {
	if len(o) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]json.RawMessage(o))
	if err != nil { // every value was checked when it was set
		return nil
	}
	return data
}

// set adds KEY=VALUE. VALUE is @FILE, JSON, or a string.
func (o Options) set(flag, keyValue string) error {
	key, value, ok := strings.Cut(keyValue, "=")
	if !ok || key == "" {
		return exit.Usagef("--%s %q: want %s", flag, keyValue, map[bool]string{true: "KEY=VALUE", false: "NAME.KEY=VALUE"}[flag == "provider-opt"])
	}
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		data, err := readBounded(path, MaxValueBytes)
		if err != nil {
			return exit.Usagef("--%s %s: %w", flag, key, err)
		}
		value = string(data)
	}
	if !utf8.ValidString(key + value) { // JSON would put replacement characters there
		return exit.Usagef("--%s %q is not valid UTF-8", flag, key)
	}
	o[key] = jsonOf(value)
	return nil
}

// fill adds what a project's file says and the command line does not.
func (o Options) fill(f *File, where string, values map[string]any) error {
	for key, value := range values {
		if _, set := o[key]; set {
			continue
		}
		if text, isText := value.(string); isText {
			read, err := f.value(text)
			if err == nil && !utf8.ValidString(read) {
				err = errNotUTF8
			}
			if err != nil {
				return exit.Usagef("config file %s: %s.%s: %w", f.path, where, key, err)
			}
			if read != text {
				o[key] = jsonOf(read)
				continue
			}
		}
		data, err := json.Marshal(value)
		if err != nil {
			return exit.Usagef("config file %s: %s.%s can't be written as JSON: %w", f.path, where, key, err)
		}
		o[key] = data
	}
	return nil
}

// jsonOf is value if it parses as JSON, else value as a JSON string.
func jsonOf(value string) json.RawMessage {
	if json.Valid([]byte(value)) {
		return json.RawMessage(strings.TrimSpace(value))
	}
	data, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return data
}

// hookOptions reads every NAME.KEY=VALUE.
func hookOptions(args []string) (map[string]Options, error) {
	out := map[string]Options{}
	for _, arg := range args {
		name, rest, ok := strings.Cut(arg, ".")
		if !ok || name == "" || strings.Contains(name, "=") {
			return nil, exit.Usagef("--hook-opt %q: want NAME.KEY=VALUE", arg)
		}
		if out[name] == nil {
			out[name] = Options{}
		}
		if err := out[name].set("hook-opt", rest); err != nil {
			return nil, err
		}
	}
	return out, nil
}
