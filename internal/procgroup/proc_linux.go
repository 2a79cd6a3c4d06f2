package procgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// process is what /proc says of one process.
type process struct {
	pid, group int
	start      uint64 // clock ticks since boot
	dead       bool   // a zombie: it runs nothing any more
	kernel     bool   // a thread of the kernel
}

// kernelThread is PF_KTHREAD of the process flags, proc(5).
const kernelThread = 0x00200000

// Boot names this boot of this machine and the process namespace, within which a
// process id and a start time mean one process.
func Boot() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(id)) + "/" + ns, nil
}

// Self is the identity of the calling process, as the leader of what it runs itself.
func Self() (Identity, error) {
	p, err := inspect(os.Getpid())
	if err != nil {
		return Identity{}, err
	}
	boot, err := Boot()
	return Identity{PID: p.pid, Start: p.start, Boot: boot}, err
}

// inspect reads one process; fs.ErrNotExist where there is none.
func inspect(pid int) (process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, gone(err)
	}
	// The second field is the command's name in brackets, with whatever it holds.
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return process{}, fmt.Errorf("process %d: /proc says %q", pid, data)
	}
	group, err := strconv.Atoi(fields[2])
	if err != nil {
		return process{}, fmt.Errorf("process %d: group: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("process %d: start time: %w", pid, err)
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("process %d: flags: %w", pid, err)
	}
	return process{pid: pid, group: group, start: start, dead: fields[0] == "Z" || fields[0] == "X", kernel: flags&kernelThread != 0}, nil
}

// gone makes one error of the ways in which /proc says that a process is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoProcess) {
		return fs.ErrNotExist
	}
	return err
}

// processes lists all that there are.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := inspect(pid)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			out = append(out, p)
		}
	}
	return out, nil
}

// belonging is what the environment of a process says of a mark.
type belonging int

const (
	stranger belonging = iota // it did not inherit the mark, or it is gone: one without memory runs nothing more
	marked                    // it did
	hidden                    // this user may not look
	bare                      // it has no environment: between two programs, or for good
)

// belongs looks whether the process inherited the mark.
func (p process) belongs(mark string) belonging {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	switch {
	case err != nil && errors.Is(gone(err), fs.ErrNotExist):
		return stranger
	case err != nil:
		return hidden
	case len(data) == 0:
		return bare
	}
	want := []byte(MarkVariable + "=" + mark)
	for line := range bytes.SplitSeq(data, []byte{0}) {
		if bytes.Equal(line, want) {
			return marked
		}
	}
	return stranger
}

// survey is what is left of a group.
type survey struct {
	leader  bool      // it lives
	members []process // the others that live and surely belong to it
	unsure  []process // in a group of that number, and nobody can say whose it is
	bare    bool      // a process without an environment is there: it may be about to have one
}

// look finds what is left of the group. ours says that the caller holds its leader
// unreaped, so that the number can be nobody else's.
func (id Identity) look(ours bool) (survey, error) {
	all, err := processes()
	if err != nil {
		return survey{}, err
	}
	var s survey
	for _, p := range all {
		if p.pid == id.PID && p.start == id.Start {
			ours = true // while it is there, dead or not
			s.leader = !p.dead
		}
	}
	for _, p := range all {
		if p.dead || p.kernel || p.pid == id.PID && p.start == id.Start || p.start < id.Start {
			continue
		}
		inGroup := p.group == id.PID
		if inGroup && ours {
			s.members = append(s.members, p)
			continue
		}
		if id.Mark == "" {
			if inGroup {
				s.unsure = append(s.unsure, p)
			}
			continue
		}
		switch b := p.belongs(id.Mark); {
		case b == marked:
			s.members = append(s.members, p)
		case b == bare:
			s.bare = true
			fallthrough
		case b == hidden:
			if inGroup {
				s.unsure = append(s.unsure, p)
			}
		}
	}
	return s, nil
}

func (s survey) empty() bool { return !s.leader && len(s.members) == 0 }
