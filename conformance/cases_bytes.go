package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
)

func byteCases() []Case {
	return []Case{
		core("S-10/bytes-come-back", "Head and entries come back byte for byte, whatever they hold.", bytesComeBack),
		core("S-10/random-bytes-come-back", "Random binary heads and entries come back byte for byte.", randomBytes),
	}
}

// awkwardBytes are payloads that trip encoders and line-based formats.
func awkwardBytes() [][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return [][]byte{
		{},
		[]byte("{}"), []byte(`{"n":9007199254740993}`), []byte(`{"n":-9223372036854775809,"f":0.1e-400}`), []byte(`{"s":"\u0000"}`), []byte("{\"s\":\"\x00\"}"),
		[]byte(`{"s":"<a href='x'>&amp;</a>"}`), []byte("{\"s\":\"\u2028\u2029\"}"), []byte("{\"s\":\"\xff\xfe\"}"), []byte("{\"s\":\"\xed\xa0\x80\"}"), []byte(`{"s":"\ud800"}`),
		[]byte("{ \"b\" : 1,\n  \"a\" : 2 }\n"), []byte(`{"a":1,"a":2}`), []byte("line\nline\r\nline\n\n"), []byte("\n"), []byte("\r"), []byte("\x00"), []byte("\x00\x00\x00\x00"),
		[]byte("null"), []byte(`""`), []byte(`"`), []byte("\\"), []byte("not json"), []byte("\xef\xbb\xbf{}"), []byte("*3\r\n$3\r\nSET\r\n"), []byte("OK"), []byte("9007199254740993"), []byte("1e400"),
		all, bytes.Repeat(all, 20), bytes.Repeat([]byte("\n"), 5000), bytes.Repeat([]byte{0}, 5000), bytes.Repeat([]byte{0xff}, 513),
	}
}

func bytesComeBack(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	payloads := awkwardBytes()
	a, err := e.owner(ctx, s, e.Key("bytes"))
	if err != nil {
		return err
	}
	for i, p := range payloads {
		if err := roundTrip(ctx, a, other, fmt.Sprintf("payload %s", brief(p)), p, p, payloads[(i+1)%len(payloads)]); err != nil {
			return err
		}
	}
	if err := roundTrip(ctx, a, other, "all payloads in one commit", payloads[7], payloads...); err != nil {
		return err
	}
	if err := roundTrip(ctx, a, other, "a nil head and nil entries", nil, nil, nil); err != nil {
		return err
	}
	_, err = s.Create(ctx, e.Key("created bytes"), store.Commit{ID: e.UUID(), Entries: payloads})
	if err != nil {
		return failf("create with an empty head and awkward entries: want success, got %w", err)
	}
	return exactly(ctx, other, e.Key("created bytes"), nil, payloads, 0)
}

// roundTrip commits and reads back through another handle.
func roundTrip(ctx context.Context, a *actor, other store.Store, what string, head []byte, entries ...[]byte) error {
	before := a.ack.LogLength
	if _, err := a.send(ctx, a.with(head, entries...)); err != nil {
		return failf("%s: want success, got %w", what, err)
	}
	if err := exactly(ctx, other, a.key, head, entries, before); err != nil {
		return failf("%s: %w", what, err)
	}
	return nil
}

func randomBytes(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	a, err := e.owner(ctx, s, e.Key("random"))
	if err != nil {
		return err
	}
	random := func() []byte {
		n := e.Rand.IntN(700)
		if e.Rand.IntN(5) == 0 {
			n = e.Rand.IntN(70_000)
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(e.Rand.Uint32())
		}
		return b
	}
	var bad []error
	for i := range 25 {
		entries := make([][]byte, e.Rand.IntN(4))
		for j := range entries {
			entries[j] = random()
		}
		bad = append(bad, roundTrip(ctx, a, other, fmt.Sprintf("random commit %d", i+1), random(), entries...))
	}
	return errors.Join(bad...)
}
