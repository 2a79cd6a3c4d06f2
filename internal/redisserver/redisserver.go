// Package redisserver starts a redis-server of one's own, for programs and tests that
// use a store on it and do nothing else to it.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startTimeout bounds how long a server may take to answer.
const startTimeout = 10 * time.Second

// Server is a running server that flushes every write (appendfsync always). It is
// reached by its socket alone, so it takes no port.
type Server struct {
	Socket string
	dir    string
	cmd    *exec.Cmd
}

// Start starts a server with its data in a temporary folder, and more arguments. It
// lives until Stop, or until ctx ends. An error that matches exec.ErrNotFound: the
// package redis-server is not installed.
func Start(ctx context.Context, args ...string) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w; install the package redis-server", err)
	}
	dir, err := os.MkdirTemp("", "redis-") // a socket's path must be short
	if err != nil {
		return nil, err
	}
	s := &Server{Socket: filepath.Join(dir, "s"), dir: dir}
	s.cmd = exec.CommandContext(ctx, binary, append([]string{
		"--port", "0", "--unixsocket", s.Socket, "--dir", dir, "--logfile", s.log(),
		"--appendonly", "yes", "--appendfsync", "always", "--save", "",
	}, args...)...)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.answers(ctx); err != nil {
		said, _ := os.ReadFile(s.log()) // as far as it came
		return nil, errors.Join(fmt.Errorf("redis-server does not answer: %w: %s", err, said), s.Stop())
	}
	return s, nil
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", s.Socket)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// Stop ends the server at once and removes its data.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	_ = s.cmd.Wait()         // it was killed
	return os.RemoveAll(s.dir)
}
