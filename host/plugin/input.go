package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/loophost/loophost/internal/jsonobject"
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

// inputHead is EncodeInput up to the document, which comes last. It is made for each
// hook call, so it is written out; the bytes are those of encoding/json.
func inputHead(in *pluginapi.HookInput) ([]byte, error) {
	if len(in.Document) == 0 {
		return nil, fmt.Errorf("hook point %s: %w: it is empty", in.Point, ErrDocument)
	}
	o := jsonobject.Open(make([]byte, 0, inputRoom))
	o.Text("point", string(in.Point))
	o.Nest("session", func(b []byte) ([]byte, error) {
		o := jsonobject.Open(b)
		o.Text("id", in.Session.ID)
		o.Text("execution_id", in.Session.ExecutionID)
		o.Text("generation", in.Session.Generation)
		o.Number("revision", in.Session.Revision)
		return o.Close()
	})
	o.Nest("loop", func(b []byte) ([]byte, error) {
		o := jsonobject.Open(b)
		o.Text("status", in.Loop.Status)
		o.Number("max_iterations", uint64(in.Loop.MaxIterations))
		o.Number("max_total_rounds", uint64(in.Loop.MaxTotalRounds))
		o.Number("iterations_started", uint64(in.Loop.IterationsStarted))
		o.Number("iterations_completed", uint64(in.Loop.IterationsCompleted))
		o.Number("rounds_started", uint64(in.Loop.RoundsStarted))
		return o.Close()
	})
	head, err := o.Close()
	if err != nil {
		return nil, fmt.Errorf("hook point %s: encode the input: %w", in.Point, err)
	}
	return append(head[:len(head)-1], `,"document":`...), nil
}

// inputRoom is what inputHead takes at most with a session id of the usual length.
const inputRoom = 512

// inputSHA256 is the hex SHA-256 of EncodeInput, from its head and its document,
// without building it: a document may be a whole conversation.
func inputSHA256(head, document []byte) string {
	sum := sha256.New()
	sum.Write(head)
	sum.Write(document)
	sum.Write([]byte{'}'})
	return hex.EncodeToString(sum.Sum(nil))
}
