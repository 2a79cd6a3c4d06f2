package ticket

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

// decodeDocument reads a value of a child's metadata, at most MaxChildValueBytes,
// strictly into v. The fields in required must be there, those of an object in it as
// "object.field"; none of all may be null. Every error is ScopeDenied and says which
// field.
func decodeDocument(data []byte, name string, v any, required ...string) error {
	if len(data) > MaxChildValueBytes {
		return badDocument(name, fmt.Sprintf("it has %d bytes; at most %d are allowed", len(data), MaxChildValueBytes), nil)
	}
	if err := strictjson.Unmarshal(data, v); err != nil {
		return badDocument(name, "", err)
	}
	seen := map[string]bool{}
	if err := fieldsOf(data, "", seen); err != nil {
		return badDocument(name, "", err)
	}
	for _, f := range required {
		if object, _, nested := strings.Cut(f, "."); !seen[f] && (!nested || seen[object]) {
			return badDocument(name, f+" is missing", nil)
		}
	}
	return nil
}

// fieldsOf notes the members of the object in data, and of the objects in it.
func fieldsOf(data []byte, prefix string, seen map[string]bool) error {
	var members map[string]jsontext.Value
	if err := strictjson.Unmarshal(data, &members); err != nil {
		return err
	}
	if members == nil {
		return errors.New("it is null")
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			return errors.New(prefix + name + " is null")
		}
		seen[prefix+name] = true
		if value.Kind() == '{' {
			if err := fieldsOf(value, prefix+name+".", seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodeDocument is the canonical JSON of a valid value of a child's metadata.
func encodeDocument(name string, v interface{ Validate() error }) (string, error) {
	if err := v.Validate(); err != nil {
		return "", err
	}
	data, err := canon.Marshal(v)
	if err != nil {
		return "", badDocument(name, "it can't be written as JSON", err)
	}
	if len(data) > MaxChildValueBytes {
		return "", badDocument(name, fmt.Sprintf("it has %d bytes; at most %d are allowed; use shorter ids", len(data), MaxChildValueBytes), nil)
	}
	return string(data), nil
}

func badDocument(name, detail string, err error) error {
	return &Error{Op: "document", Key: name, Kind: ScopeDenied, Detail: detail, Err: err}
}
