package procgroup

import (
	"errors"
	"fmt"
)

var (
	// ErrUnsupported: this system can't prove that a process group is gone.
	ErrUnsupported = errors.New("process groups can't be proved gone on this system; run agent commands on Linux")
	// ErrElsewhere: the group ran on another machine, in another boot or in another
	// process namespace, so nothing that is seen here says anything about it.
	ErrElsewhere = errors.New("the process ran in another boot or on another machine")
	// ErrUnproved: something may still run, and it can't be told whose it is.
	ErrUnproved = errors.New("it can't be proved that the process group is gone")
)

// MarkVariable is the environment variable that every process of a group inherits.
const MarkVariable = "LOOPHOST_GROUP"

// Identity names a process group for good: a number alone is used again.
type Identity struct {
	PID   int    `json:"pid"`   // of the leader, which is the group's number too
	Start uint64 `json:"start"` // the leader's, in clock ticks since boot
	Boot  string `json:"boot"`  // of the machine and the process namespace; see Boot
	Mark  string `json:"mark"`  // the value of MarkVariable; "": none
}

// Validate says what is missing.
func (id Identity) Validate() error {
	switch {
	case id.PID <= 1:
		return fmt.Errorf("pid is %d; a process group has a number above 1", id.PID)
	case id.Start == 0:
		return errors.New("the start time is missing")
	case id.Boot == "":
		return errors.New("the boot id is missing")
	}
	return nil
}
