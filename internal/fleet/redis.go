package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// startTimeout bounds how long the server may take to answer.
const startTimeout = 10 * time.Second

// redisServer is a server of this program's own, which flushes every write.
type redisServer struct {
	cmd  *exec.Cmd
	port int
}

func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		return nil, err
	}
	s := &redisServer{port: port, cmd: exec.CommandContext(ctx, "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--logfile", filepath.Join(dir, "redis.log"))}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server, of the package redis-server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", s.address())
		if err == nil {
			return s, c.Close()
		}
		select {
		case <-ctx.Done():
			s.stop()
			return nil, errors.Join(errors.New("redis-server does not answer"), err)
		case <-tick.C:
		}
	}
}

func (s *redisServer) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *redisServer) url() string { return "redis://" + s.address() }

// stop ends the server; its data goes with the folder.
func (s *redisServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}
