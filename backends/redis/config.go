package redis

import (
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/loophost/loophost/backends/redis/internal/address"
	"github.com/loophost/loophost/host/store"
)

// Config says which server a store uses, and how.
type Config struct {
	// URL names the server; see the package comment. It may hold a password, and no
	// error or log line ever repeats it.
	URL string
	// Password, if not "", is used where the URL holds none and names no file.
	Password string
	// ReplicaWait bounds how long a commit that requires replicas waits for them; 0: 2 s.
	ReplicaWait time.Duration
	// SignalPoll is how often a watched record's mailbox is read; 0: 250 ms, at most 1 s (S-13).
	SignalPoll time.Duration
	// Logger gets what a person should know: promises that changed on reconnect. nil: silent.
	Logger *slog.Logger
	// Clock gives the time for births and for people; it decides nothing else (S-8).
	// Leases run by the server's clock. nil: time.Now.
	Clock func() time.Time
}

const (
	defaultReplicaWait = 2 * time.Second
	defaultSignalPoll  = 250 * time.Millisecond
	maxSignalPoll      = time.Second
)

// Schemes lists the URL schemes that Open understands: "redis", "rediss", "unix",
// "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster".
func Schemes() []string { return address.Schemes() }

// SilenceClient keeps the client library from writing lines of its own to standard
// error; all that they say is in errors too. It is for a program's main: the library's
// logger is one for the whole process.
func SilenceClient() { goredis.SetLogger(&logging.VoidLogger{}) }

// CheckURL reports what is wrong with a URL, without its password. It connects to
// nothing. Errors: ErrUnsupported.
func CheckURL(url string) error {
	_, err := parse(url)
	return err
}

// Redacted is the URL for people, without user, password and options. Errors: ErrUnsupported.
func Redacted(url string) (string, error) {
	a, err := parse(url)
	return a.String(), err
}

func parse(url string) (address.Address, error) {
	a, err := address.Parse(url)
	if err != nil {
		return a, &store.Error{Op: "open", Kind: store.ErrUnsupported, Detail: "the Redis URL can't be used", Err: err}
	}
	return a, nil
}

func (c Config) normal() Config {
	if c.ReplicaWait <= 0 {
		c.ReplicaWait = defaultReplicaWait
	}
	if c.SignalPoll <= 0 {
		c.SignalPoll = defaultSignalPoll
	}
	c.SignalPoll = min(c.SignalPoll, maxSignalPoll)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c
}
