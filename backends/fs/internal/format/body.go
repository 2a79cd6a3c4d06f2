package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/host/store"
)

// MaxBody bounds a frame's body: the largest commit in base64, with its lines and its meta line.
const MaxBody = 256 << 20

// Meta is the second line of a frame: what is not payload.
type Meta struct {
	Time    string      `json:"time,omitempty"`    // when it was written, for people
	Key     *store.Key  `json:"key,omitempty"`     // create, tombstone
	Birth   store.Birth `json:"birth,omitempty"`   // create; delete and tombstone: the tombstone (S-12)
	Commit  string      `json:"commit,omitempty"`  // create, commit, never: the commit's id
	Content string      `json:"content,omitempty"` // create, commit: store.ContentHash in hex (S-3)
	Level   string      `json:"level,omitempty"`   // create, commit: the durability level of the Ack
	// Fence is the one under which the frame was written; of an acquire the new one.
	Fence *store.Fence `json:"fence,omitempty"`
	// Parts has one letter for each line that follows, the head first, then the
	// entries: j is JSON as it stands, b is a JSON string of base64.
	Parts string `json:"parts,omitempty"`
}

// ErrTooLong says that a frame's body would be longer than MaxBody: very many
// entries cost more than their bytes.
var ErrTooLong = errors.New("the commit is too long for one frame")

var errBody = errors.New("the frame's body is damaged")

// Encode builds one frame: header, meta line, one line for each part. It sets
// h.Body, h.BodySum and h.Sum.
func Encode(h *Header, m Meta, parts ...[]byte) ([]byte, error) {
	return AppendFrame(nil, h, m, parts...)
}

// AppendFrame is Encode behind what dst holds already. With an error dst is as it was.
func AppendFrame(dst []byte, h *Header, m Meta, parts ...[]byte) ([]byte, error) {
	var room [16]byte // a commit has few parts
	letters := room[:0]
	size := LineLen + metaRoom + len(parts)
	for _, p := range parts {
		if isLine(p) {
			letters = append(letters, 'j')
			size += len(p) + 1
			continue
		}
		letters = append(letters, 'b')
		size += base64.StdEncoding.EncodedLen(len(p)) + 3
	}
	m.Parts = string(letters)
	start := len(dst)
	out, err := m.appendTo(slices.Grow(dst, size)[:start+LineLen])
	if err != nil {
		return dst, fmt.Errorf("encode a frame's meta line: %w", err)
	}
	out = append(out, Filler)
	for i, p := range parts {
		if letters[i] == 'j' {
			out = append(out, p...)
		} else {
			out = append(out, '"')
			out = base64.StdEncoding.AppendEncode(out, p)
			out = append(out, '"')
		}
		out = append(out, Filler)
	}
	body := out[start+LineLen:]
	if len(body) > MaxBody {
		return dst, fmt.Errorf("%w: it has %d bytes with all its lines; at most %d are allowed", ErrTooLong, len(body), MaxBody)
	}
	h.Body, h.BodySum = int64(len(body)), Sum(body)
	h.AppendTo(out[:start])
	return out, nil
}

// isLine reports whether p can stand as a line of its own.
func isLine(p []byte) bool { return bytes.IndexByte(p, Filler) < 0 && isJSON(p) }

// isJSON reports whether p is one JSON value in valid UTF-8, as jq reads it.
func isJSON(p []byte) bool {
	return plainJSON(p) || jsontext.Value(p).IsValid(jsontext.AllowDuplicateNames(true))
}

// DecodeBody decodes the lines behind a header. JSON parts alias b.
func DecodeBody(b []byte) (Meta, [][]byte, error) {
	var m Meta
	line, rest, ok := bytes.Cut(b, []byte{Filler})
	if !ok {
		return m, nil, fmt.Errorf("%w: it has no meta line", errBody)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, nil, fmt.Errorf("%w: meta line: %w", errBody, err)
	}
	parts := make([][]byte, 0, min(len(m.Parts), len(rest)))
	for i := range len(m.Parts) {
		if line, rest, ok = bytes.Cut(rest, []byte{Filler}); !ok {
			return m, nil, fmt.Errorf("%w: part %d is missing", errBody, i)
		}
		switch m.Parts[i] {
		case 'j':
			parts = append(parts, line)
		case 'b':
			if len(line) < 2 || line[0] != '"' || line[len(line)-1] != '"' {
				return m, nil, fmt.Errorf("%w: part %d is no string", errBody, i)
			}
			p, err := base64.StdEncoding.Strict().AppendDecode([]byte{}, line[1:len(line)-1])
			if err != nil {
				return m, nil, fmt.Errorf("%w: part %d: %w", errBody, i, err)
			}
			parts = append(parts, p)
		default:
			return m, nil, fmt.Errorf("%w: part %d has the unknown form %q", errBody, i, m.Parts[i])
		}
	}
	if len(rest) != 0 {
		return m, nil, fmt.Errorf("%w: %d bytes too many", errBody, len(rest))
	}
	return m, parts, nil
}
