package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// onTerminal starts the job with a pseudo-terminal as stdin, stdout and stderr.
func (j *job) onTerminal() error {
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	j.close = host.Close
	if err := unix.IoctlSetPointerInt(int(host.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(int(host.Fd()), unix.TIOCGPTN)
	if err != nil {
		return err
	}
	guest, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer guest.Close() // the job has its own
	j.cmd.Stdin, j.cmd.Stdout, j.cmd.Stderr = guest, guest, guest
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := j.cmd.Start(); err != nil {
		return err
	}
	j.readers.Add(1)
	go j.read(host, &j.out) // ends with an error when the last guest side is closed
	return nil
}
