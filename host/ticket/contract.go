package ticket

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

// Contract says what a ticket's result must be.
type Contract struct {
	Title                  string   `json:"title"`     // not blank
	Objective              string   `json:"objective"` // not blank
	Constraints            []string `json:"constraints"`
	Acceptance             []string `json:"acceptance"` // at least one, none blank
	UserAcceptanceRequired bool     `json:"user_acceptance_required"`
	AllowedTools           []string `json:"allowed_tools"`
	Retry                  Retry    `json:"retry,omitzero"`
}

// Retry says how often a ticket may be attempted (T-15).
type Retry struct {
	MaxAttempts uint64 `json:"max_attempts"` // at most 100; 0: 1
}

// attempts is how many starts the contract allows.
func (c *Contract) attempts() uint64 { return max(1, c.Retry.MaxAttempts) }

// DecodeContract reads a contract strictly and validates it.
func DecodeContract(data []byte) (Contract, error) {
	var c Contract
	if err := strictjson.Unmarshal(data, &c); err != nil {
		return Contract{}, &Error{Op: "decode", Key: "contract", Kind: InvalidTransition, Err: err}
	}
	return c, c.Validate()
}

// Validate checks what the fields need and the canonical size. Errors:
// ContextBudgetExceeded over the size, InvalidTransition for the rest.
func (c *Contract) Validate() error {
	why := ""
	switch blank := func(s string) bool { return strings.TrimSpace(s) == "" }; {
	case blank(c.Title):
		why = "title is blank"
	case blank(c.Objective):
		why = "objective is blank"
	case len(c.Acceptance) == 0:
		why = "acceptance needs at least one criterion"
	case slices.ContainsFunc(c.Acceptance, blank):
		why = "an acceptance criterion is blank"
	case slices.ContainsFunc(c.AllowedTools, blank):
		why = "a name in allowed_tools is blank"
	case c.Retry.MaxAttempts > MaxAttempts:
		why = fmt.Sprintf("retry.max_attempts is %d; at most %d are allowed", c.Retry.MaxAttempts, MaxAttempts)
	}
	if why != "" {
		return &Error{Op: "contract", Kind: InvalidTransition, Detail: why}
	}
	data, err := c.Canonical()
	if err != nil {
		return &Error{Op: "contract", Kind: InvalidTransition, Err: err}
	}
	if len(data) > MaxContractBytes {
		return &Error{Op: "contract", Kind: ContextBudgetExceeded, Detail: fmt.Sprintf("its canonical JSON has %d bytes; at most %d are allowed", len(data), MaxContractBytes)}
	}
	return nil
}

// Canonical is the contract's canonical JSON. A nil list is an empty one.
func (c *Contract) Canonical() ([]byte, error) { return canon.Marshal(c) }

func (c *Contract) clone() *Contract {
	d := *c
	d.Constraints, d.Acceptance, d.AllowedTools = slices.Clone(c.Constraints), slices.Clone(c.Acceptance), slices.Clone(c.AllowedTools)
	return &d
}
