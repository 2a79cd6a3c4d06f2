// Package canon writes JSON that has one form only, so that it can be hashed and
// compared byte by byte: members sorted at every depth, no space, nothing escaped
// that need not be, integers as their digits (exact up to 2^64 - 1).
package canon

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal is v's canonical JSON. Strings that are not valid UTF-8 are an error.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return Reform(data)
}

// Reform is the canonical form of the JSON value in data, which it may overwrite.
// Duplicate names and invalid UTF-8 are an error.
func Reform(data []byte) ([]byte, error) {
	v := jsontext.Value(data)
	err := v.Format(
		jsontext.ReorderRawObjects(true),
		jsontext.PreserveRawStrings(false),
		jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false),
		jsontext.EscapeForHTML(false),
		jsontext.EscapeForJS(false),
		jsontext.SpaceAfterColon(false),
		jsontext.SpaceAfterComma(false),
		jsontext.Multiline(false),
	)
	return v, err
}

// Hash is the SHA-256 of data in lower-case hex.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
