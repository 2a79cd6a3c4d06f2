package pluginapi

// FailureKind classes a plugin's typed error.
type FailureKind string

// The kinds.
const (
	FailAuth            FailureKind = "auth"
	FailInvalidRequest  FailureKind = "invalid_request"
	FailRateLimited     FailureKind = "rate_limited" // with RetryAfterMS
	FailOverloaded      FailureKind = "overloaded"
	FailContextOverflow FailureKind = "context_overflow"
	FailNetwork         FailureKind = "network"
	FailProtocol        FailureKind = "protocol"  // the peer broke its protocol, or ended a stream early
	FailEmpty           FailureKind = "empty"     // an answer with nothing in it
	FailTruncated       FailureKind = "truncated" // an answer cut by the length limit
	FailExhausted       FailureKind = "exhausted" // a script ran out of steps
	FailInternal        FailureKind = "internal"  // anything else
)

// Retryable reports whether a host may try the same call again within the round.
func (k FailureKind) Retryable() bool {
	switch k {
	case FailRateLimited, FailOverloaded, FailNetwork, FailProtocol, FailEmpty, FailTruncated:
		return true
	}
	return false
}

// Failure is the error document of a plugin; it is an error in Go.
type Failure struct {
	Kind         FailureKind `json:"kind"`
	Message      string      `json:"message"`
	RetryAfterMS int64       `json:"retry_after_ms,omitempty"` // 0: not said
}

// Error is kind and message.
func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }
