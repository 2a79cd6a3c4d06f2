package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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

// follow calls the script on the node that holds the keys.
func (s *Store) follow(ctx context.Context, sc *script, replicas int, keys []string, args []any) (r reply, have int, err error) {
	err = s.onNode(ctx, keys[0], func(n *node) (err error) {
		if replicas > 0 {
			r, have, err = n.runAndWait(ctx, sc, replicas, s.c.ReplicaWait, keys, args)
		} else {
			r, err = n.run(ctx, sc, keys, args...)
		}
		return err
	})
	return r, have, err
}

// onNode calls do with the node that holds key, and goes where the Cluster says that
// it is now. Only answers that say "not here" are followed: then nothing was written.
func (s *Store) onNode(ctx context.Context, key string, do func(*node) error) error {
	var err error
	for range redirects {
		n, nodeErr := s.srv.of(ctx, key)
		if nodeErr != nil {
			return &refusal{kind: store.ErrUnavailable, detail: "no server is known for the record", cause: nodeErr}
		}
		if err = do(n); s.srv.cluster == nil || !goredis.HasErrorPrefix(err, "MOVED") {
			return err
		}
		s.srv.cluster.ReloadState(ctx)
	}
	return err
}

// runAndWait is run and a wait for replicas behind it on the same connection: the
// server counts for each connection what it wrote.
func (n *node) runAndWait(ctx context.Context, sc *script, replicas int, patience time.Duration, keys []string, args []any) (reply, int, error) {
	verb, name := "evalsha", sc.sha
	for {
		cmd := command(ctx, verb, name, keys, args)
		wait := goredis.NewCmd(ctx, "wait", replicas, patience.Milliseconds())
		flush := n.promise.Load()
		if flush != nil && flush.waitAOF && flush.durability.Level == store.LevelPower {
			wait = goredis.NewCmd(ctx, "waitaof", 1, replicas, patience.Milliseconds())
		}
		_, err := n.Pipelined(ctx, func(p goredis.Pipeliner) error {
			return errors.Join(p.Process(ctx, cmd), p.Process(ctx, wait))
		})
		if cmd.Err() != nil {
			if verb == "evalsha" && goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
				verb, name = "eval", sc.body
				continue
			}
			return nil, 0, cmd.Err()
		}
		r, ansErr := answer(cmd)
		if ansErr != nil {
			return nil, 0, ansErr
		}
		if err != nil {
			return nil, 0, err
		}
		have, err := waited(wait)
		return r, have, err
	}
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
