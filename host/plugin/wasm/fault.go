package wasm

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/loophost/loophost/host/plugin"
)

const (
	levelDebug = slog.LevelDebug
	levelInfo  = slog.LevelInfo
	levelWarn  = slog.LevelWarn
)

func attrDigest(d string) slog.Attr { return slog.String("digest", d) }
func attrErr(err error) slog.Attr   { return slog.String("error", err.Error()) }

func tooLarge(size, limit int) error {
	return fmt.Errorf("the module has %d bytes, the limit is %d: strip it (-ldflags=\"-s -w\"), or raise the limit", size, limit)
}

// breach is a fault before it knows whose it is.
type breach struct {
	kind   plugin.FaultKind
	detail string
	err    error
}

// Error is kind and detail.
func (b *breach) Error() string { return string(b.kind) + ": " + b.detail }

// Unwrap gives the cause.
func (b *breach) Unwrap() error { return b.err }

func breachf(kind plugin.FaultKind, format string, args ...any) *breach {
	return &breach{kind: kind, detail: fmt.Sprintf(format, args...)}
}

func (p *Plugin) fault(b *breach) *plugin.Fault {
	return &plugin.Fault{Plugin: p.info.Name, Digest: p.info.Digest, Kind: b.kind, Detail: b.detail, Err: b.err}
}

// named turns a breach within err into the plugin's fault; other errors stay as they are.
func (p *Plugin) named(err error) error {
	if err == nil {
		return nil
	}
	var b *breach
	if errors.As(err, &b) {
		return p.fault(b)
	}
	return err
}

func malformed(what string, err error) *breach {
	return &breach{kind: plugin.FaultMalformed, detail: what, err: err}
}

// trapError shows the first line of an engine's error; the stack trace behind it
// is for the log.
type trapError struct{ err error }

func (e trapError) Error() string { return firstLine(e.err.Error()) }
func (e trapError) Unwrap() error { return e.err }

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// classify makes a breach of how a guest ended without a status.
func (c *call) classify(err error) *breach {
	b := &breach{kind: plugin.FaultTrap, err: trapError{err}}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		b.detail, b.err = fmt.Sprintf("it exited with code %d", exit.ExitCode()), nil
	}
	if c.memoryRefused {
		b.kind = plugin.FaultMemory
		b.detail = strings.TrimSpace("its memory may not grow over the limit; " + b.detail)
	}
	if len(c.stderr) > 0 {
		b.detail = strings.TrimSpace(b.detail + ": " + firstLine(strings.ToValidUTF8(string(c.stderr), "�")))
	}
	return b
}
