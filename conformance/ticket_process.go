package conformance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/child"
)

// childVariable is an environment variable that every process of a case's process
// child has, wherever it went.
const childVariable = "CONFORMANCE_CHILD"

// processChild is an agent that is a shell script. It leaves a process behind, which
// must not survive the child's stop.
type processChild struct {
	Mark   string `json:"mark"`   // of all its processes
	Answer string `json:"answer"` // on its standard output
	// Ran is a file to which each run adds a line; "": none.
	Ran string `json:"ran"`
	// Waits: it never ends by itself.
	Waits bool `json:"waits"`
}

// newProcessChild is one whose mark no other process of the machine has, that of
// another run with the same seed neither.
func newProcessChild(answer string) *processChild {
	return &processChild{Mark: uuid.NewString(), Answer: answer}
}

const childScript = `
sleep 600 </dev/null >/dev/null 2>&1 &
if [ -n "$1" ]; then echo ran >>"$1"; fi
if [ -n "$3" ]; then sleep 600; fi
printf '%s' "$2"
`

// work is the child's command.
func (c *processChild) work() child.Command {
	waits := ""
	if c.Waits {
		waits = "yes"
	}
	return child.Command{
		Argv:  []string{"sh", "-c", childScript, "sh", c.Ran, c.Answer, waits},
		Env:   []string{"PATH=" + os.Getenv("PATH"), childVariable + "=" + c.Mark},
		Grace: time.Second,
	}
}

// alive are the numbers of the child's processes that live, as the machine's list of
// processes tells.
func (c *processChild) alive() ([]string, error) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range all {
		// Of a process that ended meanwhile, or is somebody else's, there is nothing to
		// read: it is not the child's.
		environ, err := os.ReadFile(file)
		if err == nil && bytes.Contains(environ, []byte(childVariable+"="+c.Mark+"\x00")) {
			out = append(out, filepath.Base(filepath.Dir(file)))
		}
	}
	return out, nil
}

// end kills what a case that failed left of the child.
func (c *processChild) end() error {
	alive, err := c.alive()
	for _, number := range alive {
		pid, aerr := strconv.Atoi(number)
		if aerr != nil {
			return errors.Join(err, aerr)
		}
		if p, ferr := os.FindProcess(pid); ferr == nil {
			_ = p.Kill() // one that has ended meanwhile is what is wanted
		}
	}
	return err
}

// wantGone checks that no process of the child lives.
func (c *processChild) wantGone(when string) error {
	alive, err := c.alive()
	if err != nil {
		return err
	}
	return wantEqual("processes of the child that live "+when, len(alive), 0)
}
