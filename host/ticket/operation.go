package ticket

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

// Command is one wish of one principal, under an id that makes it happen once (T-1).
type Command struct {
	OperationID string // 1–256 bytes; of Admit, Stop and Submit the one that the request prescribes, and of nothing else one like it
	Principal   Principal
	Request     Request
	// OnlyAt, if not nil, is the scope's seq that the command was decided on; at any
	// other it is a RevisionConflict (unless it was carried out already).
	OnlyAt *uint64
}

// Request is what a command asks for: one of this package's request types.
type Request interface {
	// Type is the request's word in receipts.
	Type() string
	decide(*draft) error
}

// Receipt says that a command was carried out, and by whom it was given.
type Receipt struct {
	OperationID      string         `json:"operation_id"`
	Principal        string         `json:"principal"`
	RequestHash      string         `json:"request_hash"` // SHA-256, hex, of CanonicalRequest
	CanonicalRequest jsontext.Value `json:"canonical_request"`
	CommittedSeq     uint64         `json:"committed_seq"`
	IDs              []string       `json:"ids"` // what the command made or moved
}

// Canonical is the receipt's canonical JSON.
func (r Receipt) Canonical() ([]byte, error) { return canon.Marshal(r) }

// decodeReceipt reads a stored receipt.
func decodeReceipt(data []byte) (Receipt, error) {
	var r Receipt
	err := strictjson.Unmarshal(data, &r)
	return r, err
}

// canonicalRequest is a request's canonical JSON with its type. What a request lists
// as a set has one order there, so that equal wishes have equal bytes.
func canonicalRequest(r Request) ([]byte, error) {
	if n, ok := r.(interface{ normal() Request }); ok {
		r = n.normal()
	}
	data, err := canon.Marshal(struct {
		Type    string  `json:"type"`
		Request Request `json:"request"`
	}{r.Type(), r})
	if err != nil {
		return nil, &Error{Op: r.Type(), Kind: InvalidTransition, Detail: "the request can't be written as JSON", Err: err}
	}
	if len(data) > MaxRequestBytes {
		return nil, &Error{Op: r.Type(), Kind: ContextBudgetExceeded, Detail: fmt.Sprintf("the request has %d bytes; at most %d are allowed", len(data), MaxRequestBytes)}
	}
	return data, nil
}
