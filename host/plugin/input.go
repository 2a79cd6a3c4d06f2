package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/loophost/loophost/pluginapi"
)

// EncodeInput is the JSON of a hook's input: the bytes that a transport sends
// and that Record.InputSHA256 is the hash of. in.Document must be one JSON value;
// it is copied as it is, not parsed again.
func EncodeInput(in *pluginapi.HookInput) ([]byte, error) {
	head, err := inputHead(in)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(head)+len(in.Document)+1)
	out = append(out, head...)
	out = append(out, in.Document...)
	return append(out, '}'), nil
}

// inputHead is EncodeInput up to the document, which comes last.
func inputHead(in *pluginapi.HookInput) ([]byte, error) {
	if len(in.Document) == 0 {
		return nil, fmt.Errorf("hook point %s: %w: it is empty", in.Point, ErrDocument)
	}
	head, err := json.Marshal(struct {
		Point   pluginapi.HookPoint   `json:"point"`
		Session pluginapi.SessionInfo `json:"session"`
		Loop    pluginapi.LoopInfo    `json:"loop"`
	}{in.Point, in.Session, in.Loop})
	if err != nil {
		return nil, fmt.Errorf("hook point %s: encode the input: %w", in.Point, err)
	}
	return append(head[:len(head)-1], `,"document":`...), nil
}

// inputSHA256 is the hex SHA-256 of EncodeInput, from its head and its document,
// without building it: a document may be a whole conversation.
func inputSHA256(head, document []byte) string {
	sum := sha256.New()
	sum.Write(head)
	sum.Write(document)
	sum.Write([]byte{'}'})
	return hex.EncodeToString(sum.Sum(nil))
}
