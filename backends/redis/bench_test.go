package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/bench"
)

// delta is a head and one entry, 4 KiB together, JSON as a host writes it.
func delta() (head, entry []byte) {
	head = fmt.Appendf(nil, `{"schema":1,"filling":%q}`, strings.Repeat("h", 474))
	entry = fmt.Appendf(nil, `{"type":"message","message":{"role":"assistant","text":%q}}`, strings.Repeat("m", 3538))
	return head, entry
}

// sessionOf makes an owned session with a log of n messages, and commits to it.
func sessionOf(b *testing.B, s *Store, id string, n int) bench.Side {
	b.Helper()
	k := store.SessionKey(id)
	last := must[store.Ack](b)(s.Create(b.Context(), k, commit(store.Mark{}, "{}")))
	f, _, err := s.Acquire(b.Context(), k, claim("me"))
	wantKind(b, "acquire", err, nil)
	const batch = 500
	for left := n; left > 0; left -= batch {
		entries := make([][]byte, min(left, batch))
		for i := range entries {
			entries[i] = []byte(`{"type":"message","message":{"role":"user","text":"of the usual length, more or less"}}`)
		}
		last = must[store.Ack](b)(s.Commit(b.Context(), k, f, store.Commit{ID: uuid.NewString(), After: last.Mark, Head: []byte("{}"), Entries: entries}))
	}
	head, entry := delta()
	ctx := b.Context()
	number := 0
	return func(steps int) error {
		for range steps {
			var err error
			number++ // the host's ids are random; to draw them is not the store's work
			last, err = s.Commit(ctx, k, f, store.Commit{ID: fmt.Sprintf("00000000-0000-4000-8000-%012x", number), After: last.Mark, Head: head, Entries: [][]byte{entry}})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// pushes is the floor: RPUSH of as many bytes by the same client, with its pool.
func pushes(b *testing.B, c *goredis.Client, list string) bench.Side {
	head, entry := delta()
	payload := append(head, entry...)
	ctx := b.Context()
	return func(steps int) error {
		for range steps {
			if err := c.RPush(ctx, list, payload).Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

// BenchmarkCommit measures a commit of 4 KiB by several sessions at once against RPUSH
// of the same bytes by the same client, and tells what a PING takes.
func BenchmarkCommit(b *testing.B) {
	for _, m := range []struct {
		name string
		args []string
	}{{"always", always}, {"everysec", everysec}} {
		for _, over := range []string{"tcp", "unix"} {
			for _, writers := range []int{1, 16, 64} {
				b.Run(fmt.Sprintf("fsync=%s/over=%s/writers=%d", m.name, over, writers), func(b *testing.B) {
					// A rewrite of the file in the middle of a turn would measure itself.
					server := startServer(b, append([]string{"--auto-aof-rewrite-percentage", "0"}, m.args...)...)
					url := server.url()
					if over == "unix" {
						url = "unix://" + server.socket()
					}
					s := openStore(b, url)
					ours, theirs := make([]bench.Side, writers), make([]bench.Side, writers)
					for i := range writers {
						ours[i] = sessionOf(b, s, fmt.Sprint("session-", i), 10)
						theirs[i] = pushes(b, s.srv.single.Client, fmt.Sprint("list-", i))
					}
					bench.Against(b, max(200, 20*writers), bench.Workers(ours), bench.Workers(theirs))
					reportPing(b, s.srv.single.Client)
					reportServer(b, server)
				})
			}
		}
	}
}

func reportPing(b *testing.B, c *goredis.Client) {
	var took []float64
	for range 200 {
		start := time.Now()
		if err := c.Ping(b.Context()).Err(); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(start))/float64(time.Microsecond))
	}
	b.ReportMetric(bench.Median(took), "ping-µs")
}

// reportServer tells how long the server itself worked on a commit and on its floor.
func reportServer(b *testing.B, s *server) {
	stats := must[map[string]string](b)(s.info("commandstats"))
	for _, name := range []string{"evalsha", "rpush"} {
		for _, field := range strings.Split(stats["cmdstat_"+name], ",") {
			if v, ok := strings.CutPrefix(field, "usec_per_call="); ok {
				n, err := strconv.ParseFloat(v, 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(n, name+"-server-µs")
			}
		}
	}
}

// BenchmarkCommitAge is the 100,000-message session beside the 10-message one.
func BenchmarkCommitAge(b *testing.B) {
	s := openStore(b, startServer(b, everysec...).url())
	bench.Against(b, 200, sessionOf(b, s, "old", 100_000), sessionOf(b, s, "young", 10))
}

// BenchmarkPage reads pages of 10 entries from the start, the middle and the end of a
// log of 100,000, beside those of a log of 100.
func BenchmarkPage(b *testing.B) {
	s := openStore(b, startServer(b, everysec...).url())
	const long, short = 100_000, 100
	sessionOf(b, s, "long", long)
	sessionOf(b, s, "short", short)
	read := func(id string, from uint64) bench.Side {
		ctx := b.Context()
		return func(steps int) error {
			for range steps {
				p, err := s.ReadLog(ctx, store.SessionKey(id), from, 10)
				if err != nil {
					return err
				}
				if len(p.Entries) != 10 {
					return fmt.Errorf("got %d entries, want 10", len(p.Entries))
				}
			}
			return nil
		}
	}
	for _, at := range []struct {
		name string
		from uint64
	}{{"first", 1}, {"quarter", long / 4}, {"middle", long / 2}, {"last", long - 9}} {
		b.Run("at="+at.name, func(b *testing.B) { bench.Against(b, 200, read("long", at.from), read("short", short/2)) })
	}
}

// Floor is one PING to the same server.
func (h harness) Floor(context.Context) (conformance.Floor, error) {
	return conformance.Floor{
		Name:  "PING",
		Do:    func([]byte) error { return h.direct.Ping(context.Background()).Err() },
		Close: func() error { return nil },
	}, nil
}

func BenchmarkStore(b *testing.B) {
	s := startServer(b, always...)
	conformance.Bench(b, singleHarness(s, "redis, appendfsync always", s.url()))
}
