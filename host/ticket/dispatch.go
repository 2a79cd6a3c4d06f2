package ticket

import (
	"fmt"
	"strconv"

	"github.com/loophost/loophost/host/ticket/internal/canon"
)

// Input is what a dependency gave, frozen when the assignment started.
type Input struct {
	Ticket           string     `json:"ticket"`
	ContractRevision uint64     `json:"contract_revision"`
	Submission       string     `json:"submission"` // the accepted one
	Artifacts        []Artifact `json:"artifacts"`
}

// DispatchSpec is all that a child is told about its assignment.
type DispatchSpec struct {
	Binding          Binding   `json:"binding"`
	Ticket           string    `json:"ticket"`
	Assignment       string    `json:"assignment"`
	Generation       uint64    `json:"generation"`
	ContractRevision uint64    `json:"contract_revision"`
	AuthorityEpoch   uint64    `json:"authority_epoch"`
	Contract         *Contract `json:"contract"`
	Inputs           []Input   `json:"inputs"`
}

// Canonical is the spec's canonical JSON.
func (d *DispatchSpec) Canonical() ([]byte, error) { return canon.Marshal(d) }

// Hash is the spec_hash: SHA-256, hex, of the canonical JSON. Error:
// ContextBudgetExceeded over MaxDispatchBytes.
func (d *DispatchSpec) Hash() (string, error) {
	data, err := d.Canonical()
	if err != nil {
		return "", err
	}
	if len(data) > MaxDispatchBytes {
		return "", &Error{Op: "dispatch", Key: d.Assignment, Kind: ContextBudgetExceeded, Detail: fmt.Sprintf("its spec has %d bytes; at most %d are allowed", len(data), MaxDispatchBytes)}
	}
	return canon.Hash(data), nil
}

// DispatchKey names an attempt everywhere: <scope_id>/<assignment id>/<generation>.
// Neither of the last two holds a slash, so different attempts have different keys.
func (d *DispatchSpec) DispatchKey() string {
	return dispatchKey(d.Binding.ScopeID, d.Assignment, d.Generation)
}

func dispatchKey(scope, assignment string, generation uint64) string {
	return scope + "/" + assignment + "/" + strconv.FormatUint(generation, 10)
}

// AssignmentID is the id of a ticket's attempt: <ticket>@<generation>.
func AssignmentID(ticket string, generation uint64) string {
	return ticket + "@" + strconv.FormatUint(generation, 10)
}

// validTicketID reports whether id is 1–128 letters, digits, '.', '_' or '-', the
// first of them a letter or digit.
func validTicketID(id string) bool {
	if id == "" || len(id) > MaxTicketIDBytes {
		return false
	}
	for i, c := range []byte(id) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
