package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/host/store"
)

// redirects bounds how often a Cluster may send one call to another node.
const redirects = 8

// settleTime is how long a call whose context ended waits for an answer that is
// probably on its way: a known outcome is worth more than a quick one.
const settleTime = 250 * time.Millisecond

// run calls a script on the node: one round trip, or two where the server does not
// know the script yet.
func (n *node) run(ctx context.Context, sc *script, keys []string, args ...any) (reply, error) {
	r, err := n.send(ctx, "evalsha", sc.sha, keys, args)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		r, err = n.send(ctx, "eval", sc.body, keys, args)
	}
	return r, err
}

func (n *node) send(ctx context.Context, verb, name string, keys []string, args []any) (reply, error) {
	cmd := command(ctx, verb, name, keys, args)
	if err := n.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return answer(cmd)
}

func command(ctx context.Context, verb, name string, keys []string, args []any) *goredis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, verb, name, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return goredis.NewCmd(ctx, append(all, args...)...)
}

func answer(cmd *goredis.Cmd) (reply, error) {
	l, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	return l, nil
}

// eval calls a script on the node that holds the keys, and gives its answer as the
// port's error where there is none.
func (s *Store) eval(ctx context.Context, op string, key store.Key, sc *script, keys []string, args ...any) (reply, error) {
	r, _, err := s.evalOn(ctx, op, key, sc, 0, keys, args)
	return r, err
}

// evalOn is eval; with replicas above 0 it waits on the same connection until as many
// have the answer's writes, and tells how many do.
func (s *Store) evalOn(ctx context.Context, op string, key store.Key, sc *script, replicas int, keys []string, args []any) (r reply, have int, err error) {
	if ctx.Done() == nil {
		r, have, err = s.follow(ctx, sc, replicas, keys, args)
	} else {
		r, have, err = s.detached(ctx, sc, replicas, keys, args)
	}
	if err != nil {
		return nil, 0, s.fail(op, key, err, sc.writes)
	}
	return r, have, nil
}

// detached makes the call where it can be left when ctx ends. It may go on sending then,
// so nothing in args may be changed by anybody.
func (s *Store) detached(ctx context.Context, sc *script, replicas int, keys []string, args []any) (reply, int, error) {
	type result struct {
		r    reply
		have int
		err  error
	}
	done := make(chan result, 1)
	s.busy.Add(1) // the caller is counted, so the store is not closed yet
	go func() {
		defer s.busy.Done()
		// Without ctx's end: the client would drop a connection that answers soon.
		r, have, err := s.follow(context.WithoutCancel(ctx), sc, replicas, keys, args)
		done <- result{r, have, err}
	}()
	select {
	case out := <-done:
		return out.r, out.have, out.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.r, out.have, out.err
	case <-timer.C:
		return nil, 0, ctx.Err()
	}
}

// follow calls the script on the node that holds the key, and goes where the Cluster
// says that it is now. Only answers that say "not here" are followed: then nothing was
// written. Nothing else is sent twice.
func (s *Store) follow(ctx context.Context, sc *script, replicas int, keys []string, args []any) (r reply, have int, err error) {
	for range redirects {
		n, nodeErr := s.srv.of(ctx, keys[0])
		if nodeErr != nil {
			return nil, 0, &refusal{kind: store.ErrUnavailable, detail: "no server is known for the record", cause: nodeErr}
		}
		r, have, err = n.call(ctx, sc, call{replicas: replicas, patience: s.c.ReplicaWait}, keys, args)
		if s.srv.cluster == nil {
			return r, have, err
		}
		if to, ok := redirected(err, "ASK"); ok {
			// The slot is on its way, and this record is there already.
			if n, err = s.srv.at(ctx, to); err != nil {
				return nil, 0, &refusal{kind: store.ErrUnavailable, detail: "the Cluster is moving the record to a node that is not known yet; try again soon", cause: err}
			}
			r, have, err = n.call(ctx, sc, call{replicas: replicas, patience: s.c.ReplicaWait, asking: true}, keys, args)
		}
		_, moved := redirected(err, "MOVED")
		if moved || err != nil && serverSays(err) == "" {
			s.srv.cluster.ReloadState(ctx) // the node may be gone, and another one its heir
		}
		if !moved {
			return r, have, err
		}
	}
	return r, have, err
}

// redirected is the address in an answer "MOVED slot address" or "ASK slot address".
func redirected(err error, word string) (addr string, ok bool) {
	words := strings.Fields(serverSays(err))
	if len(words) != 3 || words[0] != word {
		return "", false
	}
	return words[2], true
}

// call says what goes with a script on the same connection.
type call struct {
	replicas int           // above 0: wait behind it until as many have its writes
	patience time.Duration // of that wait
	asking   bool          // in front of it: this node is about to get the slot
}

func (n *node) call(ctx context.Context, sc *script, c call, keys []string, args []any) (r reply, have int, err error) {
	if c.replicas == 0 && !c.asking {
		r, err = n.run(ctx, sc, keys, args...)
		return r, 0, err
	}
	r, have, err = n.batch(ctx, "evalsha", sc.sha, c, keys, args)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		r, have, err = n.batch(ctx, "eval", sc.body, c, keys, args)
	}
	return r, have, err
}

// batch sends a script with what goes before and behind it in one round trip. The
// server counts for each connection what it wrote, so a wait must be on the same one.
func (n *node) batch(ctx context.Context, verb, name string, c call, keys []string, args []any) (reply, int, error) {
	cmd := command(ctx, verb, name, keys, args)
	var wait *goredis.Cmd
	_, err := n.Pipelined(ctx, func(p goredis.Pipeliner) error {
		var errs []error
		if c.asking {
			errs = append(errs, p.Process(ctx, goredis.NewCmd(ctx, "asking")))
		}
		errs = append(errs, p.Process(ctx, cmd))
		if c.replicas > 0 {
			wait = n.waiting(ctx, c)
			errs = append(errs, p.Process(ctx, wait))
		}
		return errors.Join(errs...)
	})
	if cmd.Err() != nil {
		return nil, 0, cmd.Err()
	}
	if err != nil {
		return nil, 0, err
	}
	r, err := answer(cmd)
	if err != nil || wait == nil {
		return r, 0, err
	}
	have, err := waited(wait)
	return r, have, err
}

// waiting is the command that waits for replicas: until they flushed where the server
// can tell that, else until they have it.
func (n *node) waiting(ctx context.Context, c call) *goredis.Cmd {
	if p := n.promise.Load(); p != nil && p.waitAOF && p.durability.Level == store.LevelPower {
		return goredis.NewCmd(ctx, "waitaof", 1, c.replicas, c.patience.Milliseconds())
	}
	return goredis.NewCmd(ctx, "wait", c.replicas, c.patience.Milliseconds())
}

// waited is how many replicas confirmed: the answer of WAIT, or the second of WAITAOF.
func waited(cmd *goredis.Cmd) (int, error) {
	switch v := cmd.Val().(type) {
	case int64:
		return int(v), nil
	case []any:
		if len(v) == 2 {
			if n, ok := v[1].(int64); ok {
				return int(n), nil
			}
		}
	}
	return 0, fmt.Errorf("the server answers %s to a wait for replicas", strconv.Quote(fmt.Sprint(cmd.Val())))
}
