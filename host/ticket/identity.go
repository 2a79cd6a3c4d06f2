package ticket

import "strings"

// ProcessIdentity is the document under MetaProcessIdentity: which process group of
// which boot of which machine a child runs in (T-14). It proves nothing by itself.
type ProcessIdentity struct {
	PID          uint64 `json:"pid"`           // not 0
	StartTime    uint64 `json:"start_time"`    // of the process, in the system's unit; not 0, and only compared
	BootID       string `json:"boot_id"`       // 1–256 bytes; another after each start of the machine
	ProcessGroup uint64 `json:"process_group"` // not 0
	HostName     string `json:"host_name"`     // 1–256 bytes
}

// Encode is p's canonical JSON. Error: ScopeDenied, naming the field.
func (p ProcessIdentity) Encode() (string, error) { return encodeDocument(MetaProcessIdentity, p) }

// DecodeProcessIdentity reads what Encode writes, strictly. Every error is
// ScopeDenied and says which field.
func DecodeProcessIdentity(data []byte) (ProcessIdentity, error) {
	var p ProcessIdentity
	if err := decodeDocument(data, MetaProcessIdentity, &p, "pid", "start_time", "boot_id", "process_group", "host_name"); err != nil {
		return ProcessIdentity{}, err
	}
	if err := p.Validate(); err != nil {
		return ProcessIdentity{}, err
	}
	return p, nil
}

// Validate checks the fields. Error: ScopeDenied, naming the field.
func (p ProcessIdentity) Validate() error {
	blank := func(s string) bool { return !validID(s) || strings.TrimSpace(s) == "" }
	why := ""
	switch {
	case p.PID == 0:
		why = "pid is 0"
	case p.StartTime == 0:
		why = "start_time is 0"
	case p.ProcessGroup == 0:
		why = "process_group is 0"
	case blank(p.BootID):
		why = "boot_id needs 1 to 256 bytes that are not blank"
	case blank(p.HostName):
		why = "host_name needs 1 to 256 bytes that are not blank"
	}
	if why == "" {
		return nil
	}
	return badDocument(MetaProcessIdentity, why, nil)
}

// Visible says whether a look at the process table of a machine tells anything of p:
// nil, or AuthorityUnavailable. A pid from another boot proves nothing (T-14), nor
// does one from another machine: the same number names another process there.
func (p ProcessIdentity) Visible(hostName, bootID string) error {
	why := ""
	switch {
	case p.HostName != hostName:
		why = "the process ran on " + p.HostName + "; only that machine can tell whether it stopped"
	case p.BootID != bootID:
		why = "the process ran before the machine was started anew, which proves nothing; let a person confirm the stop"
	default:
		return nil
	}
	return &Error{Op: "document", Key: MetaProcessIdentity, Kind: AuthorityUnavailable, Detail: why}
}
