package format

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/store"
)

func TestKeysComeBack(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"plain", "a b", "a%20b", "{x}", "x}", ":", "é", "e\u0301", "\x00", "../..", "*?[", strings.Repeat("日", 85), "a", "A"} {
		k := store.SessionKey(id)
		name := Record("loophost", k)
		if other, there := seen[name]; there {
			t.Errorf("%q and %q share the key %q", id, other, name)
		}
		seen[name] = id
		if strings.ContainsAny(name, "{}") {
			t.Errorf("%q: the key %q holds a brace, which means something to a Cluster", id, name)
		}
		if got, ok := ParseRecord("loophost", store.KindSession, name); !ok || got != k {
			t.Errorf("%q: got %v, %v from %q", id, got, ok, name)
		}
	}
}

func TestForeignKeysAreNoRecords(t *testing.T) {
	for _, name := range []string{
		"", "loophost:record:session:", "loophost:record:scope:a", "other:record:session:a", "loophost:record:session:a b",
		"loophost:record:session:%", "loophost:record:session:%4", "loophost:record:session:%41", "loophost:record:session:%c3",
		"loophost:record:session:%C3", "loophost:record:session:" + strings.Repeat("a", 257),
	} {
		if k, ok := ParseRecord("loophost", store.KindSession, name); ok {
			t.Errorf("%q: got the record %v, want none", name, k)
		}
	}
}

func TestFencesAreEqualWhereTheirTextsAre(t *testing.T) {
	fences := []store.Fence{
		{},
		{Birth: 1},
		{Birth: 2},
		{Birth: 1, Owner: "a"},
		{Birth: 1, Owner: "a b"},
		{Birth: 1, Run: "a"},
		{Birth: 1, Generation: "a"},
		{Birth: 1, Generation: "a", Run: "b"},
		{Birth: 1, Generation: "ab"},
		{Birth: 1, Owner: `"`},
		{Birth: 1, Owner: "<&>\u2028"},
	}
	for i, a := range fences {
		for j, b := range fences {
			if (Fence(a) == Fence(b)) != (i == j) {
				t.Errorf("%+v and %+v have the texts %q and %q", a, b, Fence(a), Fence(b))
			}
		}
		if got, err := ParseFence(Fence(a)); err != nil || got != a {
			t.Errorf("%q: got %+v, %v, want %+v", Fence(a), got, err, a)
		}
	}
	for _, bad := range []store.Fence{{Birth: 1, Owner: "\xff"}, {Birth: 1, Owner: "\xfe"}, {Run: "\xff"}} {
		if got := Fence(bad); got != NoFence {
			t.Errorf("%+v: got %q, want the fence of nobody", bad, got)
		}
	}
}

// whole is a unit with every field set.
func whole() Unit {
	return Unit{
		Kind: Commit, Birth: store.BirthAt(time.Unix(1_800_000_000, 123456789), 0), ID: "id", Content: "content", Before: "before", Chain: "chain",
		Entries: 3, LogSum: "0a0b0c0d", HeadSum: "01020304", Level: store.LevelPower, Owner: "host:\"1\" \x01 é <>&", Run: "run", Gen: "generation",
		Force: true, Time: "2026-01-02T03:04:05.6Z",
	}
}

func TestUnitsComeBack(t *testing.T) {
	for _, u := range []Unit{whole(), {Kind: Never, Birth: 1, ID: "id", Chain: "chain"}, {Kind: Acquire, Birth: 1, Owner: "\u2028"}} {
		text, err := u.Encode(7)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseUnit(7, text)
		if d := cmp.Diff(u, got); err != nil || d != "" {
			t.Errorf("%v, unit differs (-want +got):\n%s", err, d)
		}
		if _, err := ParseUnit(8, text); err == nil {
			t.Errorf("the unit is whole at another revision too: %s", text)
		}
		for i := range text {
			b := []byte(text)
			b[i] ^= 1
			if got, err := ParseUnit(7, string(b)); err == nil {
				t.Fatalf("byte %d changed: got %+v, want damage", i, got)
			}
		}
	}
}

func TestEntriesComeBack(t *testing.T) {
	for _, data := range []string{"", "x", "{\"a\":1}\n\n", "\x00\xff", "1 2 3\n"} {
		stored := EncodeEntry(5, 2, EntrySum(9, 5, 2, []byte(data)), []byte(data))
		got, err := ParseEntry(9, 11, stored)
		if err != nil || string(got.Data) != data || got.Seq != 11 || got.Revision != 5 || got.Number != 2 {
			t.Errorf("%q: got %+v, %v", data, got, err)
		}
		if _, err := ParseEntry(8, 11, stored); err == nil {
			t.Errorf("%q: the entry is whole in another birth too", data)
		}
		for i := range stored {
			b := bytes.Clone(stored)
			b[i] ^= 1
			if got, err := ParseEntry(9, 11, b); err == nil {
				t.Fatalf("%q, byte %d changed: got %+v, want damage", data, i, got)
			}
		}
	}
}

func TestNumbersHaveOneText(t *testing.T) {
	for _, s := range []string{"", "-1", "+1", "01", "1.0", "1e3", " 1", "18446744073709551616", "x"} {
		if n, err := ParseNumber(s); err == nil {
			t.Errorf("%q: got %d, want an error", s, n)
		}
	}
	for _, n := range []uint64{0, 1, 1 << 53, 1<<53 + 1, 1<<64 - 1} {
		if got, err := ParseNumber(Number(n)); err != nil || got != n {
			t.Errorf("%d: got %d, %v", n, got, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "x", "9223372036854775808"} {
		if b, err := ParseBirth(s); err == nil {
			t.Errorf("birth %q: got %d, want an error", s, b)
		}
	}
}

func FuzzParseUnit(f *testing.F) {
	text, err := whole().Encode(7)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(7), text)
	f.Add(uint64(0), "00000000 {}")
	f.Fuzz(func(t *testing.T, place uint64, stored string) {
		u, err := ParseUnit(place, stored)
		if err != nil {
			return
		}
		again, err := u.Encode(place)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := ParseUnit(place, again); err != nil || v != u {
			t.Fatalf("%q became %q: %+v, %+v, %v", stored, again, u, v, err)
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	f.Add(int64(9), []byte("5 2 "+EntrySum(9, 5, 2, []byte("data"))+"\ndata"))
	f.Add(int64(1), []byte("\n"))
	f.Fuzz(func(t *testing.T, birth int64, stored []byte) {
		e, err := ParseEntry(store.Birth(birth), 1, stored)
		if err == nil && !bytes.Equal(EncodeEntry(e.Revision, e.Number, e.Sum, e.Data), stored) {
			t.Fatalf("%q became another entry", stored)
		}
	})
}

func FuzzParseTexts(f *testing.F) {
	for _, s := range []string{"", "+1 2", "-3 4", `{"birth":"2026-01-02T03:04:05.000000000Z","generation":"g","owner":"o","run":"r"}`, `{"kind":"stop","run":"r","reason":"","time":"2026-01-02T03:04:05Z"}`, "a%20b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if fence, err := ParseFence(s); err == nil && Fence(fence) != s {
			t.Errorf("fence %q became %q", s, Fence(fence))
		}
		if sig, err := ParseSignal(store.SignalStop, s); err == nil && sig.Kind != store.SignalStop {
			t.Errorf("signal %q became a %q", s, sig.Kind)
		}
		if n, err := ParseNumber(s); err == nil && Number(n) != s {
			t.Errorf("number %q became %d", s, n)
		}
		if _, err := ParseSettled(s); err == nil && s[0] != '+' && s[0] != '-' {
			t.Errorf("commit id %q says what became of it", s)
		}
		if id, ok := Unescape(s); ok && Escape(id) != s {
			t.Errorf("id %q became %q", s, Escape(id))
		}
	})
}

// A token is read as it was written, or not at all.
func FuzzToken(f *testing.F) {
	for _, s := range []string{"", ".", "1-0.", ".a", "1-0.5f0c-1", "1-0.5f0c.1", "1-0.x y", "a\x00.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		entry, nonce, ok := ParseToken(token)
		if ok && (Token(entry, nonce) != token || entry == "" || nonce == "" || strings.ContainsAny(nonce, " .\x00")) {
			t.Errorf("%q: got the entry %q and the nonce %q, want them to make the token again", token, entry, nonce)
		}
	})
}
