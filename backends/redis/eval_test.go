package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/host/store"
)

func TestWaitingAsksForTheMostThatTheServerCanTell(t *testing.T) {
	for _, c := range []struct {
		name    string
		promise *promise
		want    string
	}{
		{"before 7.2", &promise{durability: store.Durability{Level: store.LevelPower}}, "wait 2 1500"},
		{"7.2, flushing", &promise{durability: store.Durability{Level: store.LevelPower}, waitAOF: true}, "waitaof 1 2 1500"},
		{"7.2, not flushing", &promise{durability: store.Durability{Level: store.LevelMemory}, waitAOF: true}, "wait 2 1500"},
		{"a server not looked at", nil, "wait 2 1500"},
	} {
		n := &node{}
		n.promise.Store(c.promise)
		cmd := n.waiting(context.Background(), call{replicas: 2, patience: 1500 * time.Millisecond})
		var words []string
		for _, a := range cmd.Args() {
			words = append(words, fmt.Sprint(a))
		}
		got := strings.Join(words, " ")
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWaitedCountsReplicas(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer any
		want   int
		ok     bool
	}{
		{"of WAIT", int64(2), 2, true},
		{"of WAITAOF, the second number", []any{int64(1), int64(3)}, 3, true},
		{"a text", "2", 0, false},
		{"a list of one", []any{int64(1)}, 0, false},
		{"a list of texts", []any{"1", "2"}, 0, false},
		{"nothing", nil, 0, false},
	} {
		cmd := goredis.NewCmd(context.Background())
		cmd.SetVal(c.answer)
		got, err := waited(cmd)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: got %d, %v; want %d, success %v", c.name, got, err, c.want, c.ok)
		}
	}
}

func TestRedirectsAreReadFromTheServersWordsOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
		ok   bool
	}{
		{"moved", proto("MOVED 12 10.0.0.1:6379"), "10.0.0.1:6379", true},
		{"asked elsewhere", proto("ASK 12 10.0.0.1:6379"), "", false},
		{"too few words", proto("MOVED 12"), "", false},
		{"not the server's", errors.New("MOVED 12 10.0.0.1:6379"), "", false},
		{"none", nil, "", false},
	} {
		got, ok := redirected(c.err, "MOVED")
		if got != c.want || ok != c.ok {
			t.Errorf("%s: got %q, %v; want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// proto is an error as the server answers it.
type proto string

func (p proto) Error() string { return string(p) }
func (proto) RedisError()     {}
