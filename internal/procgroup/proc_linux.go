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
}

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
	return process{pid: pid, group: group, start: start, dead: fields[0] == "Z" || fields[0] == "X"}, nil
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

// marked reports whether the process inherited the mark. known is false where this
// user may not look.
func (p process) marked(mark string) (yes, known bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return false, errors.Is(gone(err), fs.ErrNotExist)
	}
	want := []byte(MarkVariable + "=" + mark)
	for line := range bytes.SplitSeq(data, []byte{0}) {
		if bytes.Equal(line, want) {
			return true, true
		}
	}
	return false, true
}

// survey is what is left of a group.
type survey struct {
	leader  bool      // it lives
	members []process // the others that live and surely belong to it
	unsure  []process // in a group of that number, and nobody can say whose it is
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
		if p.dead || p.pid == id.PID && p.start == id.Start || p.start < id.Start {
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
		switch yes, known := p.marked(id.Mark); {
		case yes:
			s.members = append(s.members, p)
		case inGroup && !known:
			s.unsure = append(s.unsure, p)
		}
	}
	return s, nil
}

func (s survey) empty() bool { return !s.leader && len(s.members) == 0 }
