package child

import (
	"errors"
	"os"

	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/internal/procgroup"
)

func machineName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	return os.Hostname()
}

// selfIdentity is this process; nil where the system can't tell one from another.
func selfIdentity(machine string) (*ticket.ProcessIdentity, error) {
	id, err := procgroup.Self()
	if errors.Is(err, procgroup.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := identityOf(id, machine)
	return &p, p.Validate()
}

func identityOf(id procgroup.Identity, machine string) ticket.ProcessIdentity {
	return ticket.ProcessIdentity{PID: uint64(id.PID), StartTime: id.Start, BootID: id.Boot, ProcessGroup: uint64(id.PID), HostName: machine}
}

// groupOf is the process group that p names; mark is what its processes inherited.
func groupOf(p ticket.ProcessIdentity, mark string) procgroup.Identity {
	return procgroup.Identity{PID: int(p.PID), Start: p.StartTime, Boot: p.BootID, Mark: mark}
}
