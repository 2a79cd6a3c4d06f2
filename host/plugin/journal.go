package plugin

import "github.com/loophost/loophost/pluginapi"

// Record is one decision in the session's durable log.
type Record struct {
	Point       pluginapi.HookPoint `json:"point"`
	Plugin      string              `json:"plugin"`
	Digest      string              `json:"digest"`
	InputSHA256 string              `json:"input_sha256"` // hex, of EncodeInput
	Action      pluginapi.Action    `json:"action"`       // what took effect; continue with a Fault: a warning, on_error allowed it
	Reason      string              `json:"reason,omitempty"`
	Code        string              `json:"code,omitempty"`
	Fault       string              `json:"fault,omitempty"` // a fault's kind and text, where there was one
	DurationUS  int64               `json:"duration_us"`     // microseconds
	BytesIn     int64               `json:"bytes_in"`
	BytesOut    int64               `json:"bytes_out"`
	PeakMemory  int64               `json:"peak_memory"` // bytes
	Grants      []string            `json:"grants,omitempty"`
}
