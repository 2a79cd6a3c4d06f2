//go:build unix && !linux

package main

import "errors"

func (j *job) onTerminal() error {
	return errors.New("this test opens pseudo-terminals on Linux only; run it there")
}
