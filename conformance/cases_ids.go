package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loophost/loophost/host/store"
)

func idCases() []Case {
	return []Case{
		core("S-10/any-id", "Every id is stored and listed exactly, or refused with the reason; two ids never share a record.", anyID),
		core("S-10/ids-live-apart", "Look-alike ids have logs, owners and tombstones of their own.", idsLiveApart),
		core("S-10/random-ids", "Random ids of all kinds of characters are stored and listed exactly.", randomIDs),
		core("S-10/kinds-are-apart", "The same id in two kinds is two records, also where kind and id run together.", kindsApart),
		core("S-10/refused-keys", "An empty id, an id over 256 bytes, an id that is no UTF-8 and a malformed kind are refused by every method.", refusedKeys),
	}
}

// awkwardIDs are names that trip filesystems, databases, shells and encoders.
func awkwardIDs() []string {
	ids := []string{
		".", "..", "...", "../x", "../../../../etc/passwd", "/", "//", "/x", "x/", "x/y", "x//y", "./x", "x/../y", `\`, `..\x`, `x\y`, `C:\x`, "C:",
		"\x00", "a\x00", "a\x00b", "\x00a", "a", "A", "aA", "Aa", "AA", "aa", "a ", " a", "a.", ".a", "a. ", "a\t", "a\n", "\na", "a\r\n", "\x7f", "\x1b[31m",
		"é", "e\u0301", "É", "E\u0301", "ß", "ẞ", "SS", "ss", "ı", "i", "I", "İ", "ſ", "s", "K", "\u212a", "k", "Å", "\u212b", "A\u030a", "ﬁ", "fi", "\u200b", "a\u200b", "\ufeff", "\ufeffa", "\u202ea", "日本語", "🜁", "\U0010ffff", "\ufffd",
		"CON", "con", "NUL", "nul", "NUL.txt", "AUX", "PRN", "COM1", "com1.json", "LPT9", "COM¹", "CONIN$",
		"*", "?", "a*", "[a]", "a:b", "a|b", `"`, "'", "<a>", "&amp;", "%", "%2e%2e", "%00", "%2F", "a%", "$HOME", "`id`", "$(id)", ";", "#", "~", "-", "--help", "-rf", "{a}", "a{b", "a}b", "{", "}",
		"lock", "head", "log", ".lock", "tmp", "index", "tombstone", "null", "true", "0", "00", "1", "01", "1.0", "1e0", "-0", "9007199254740993", "9007199254740992",
	}
	for _, unit := range []string{"a", "A", "é", "日", "🜁", "%", "/", "\x00", "."} {
		ids = append(ids, strings.Repeat(unit, store.MaxIDBytes/len(unit)))
	}
	long := strings.Repeat("x", store.MaxIDBytes-1)
	return append(ids, long, long+"y", long+"Y", "y"+long, strings.Repeat("z", 200)+"/"+strings.Repeat("z", 55))
}

// storeIDs creates a record for each id whose head and entry say which id it
// is, and returns those that the store accepted.
func storeIDs(ctx context.Context, e *Env, s store.Store, ids []string) ([]string, error) {
	var taken []string
	var bad []error
	for _, id := range ids {
		_, err := s.Create(ctx, e.Key(id), store.Commit{ID: e.UUID(), Head: []byte("head of " + id), Entries: [][]byte{[]byte("entry of " + id)}})
		if err == nil {
			taken = append(taken, id)
			continue
		}
		at := fmt.Sprintf("create the id %q", id)
		bad = append(bad, wantKind(at+" (stored or refused)", err, store.ErrInvalidID))
		if asError(err).Detail == "" && asError(err).Err == nil {
			bad = append(bad, failf("%s: want a refusal that says why, got %v", at, err))
		}
	}
	if len(taken)*2 < len(ids) {
		bad = append(bad, failf("want most ids to be stored, got %d of %d", len(taken), len(ids)))
	}
	return taken, errors.Join(bad...)
}

// holdsIDs checks that each id has its own record and that the list is exactly ids.
func holdsIDs(ctx context.Context, e *Env, s store.Store, ids []string) error {
	var bad []error
	for _, id := range ids {
		got, err := look(ctx, s, e.Key(id))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		at := fmt.Sprintf("the record of %q", id)
		bad = append(bad, wantEqual(at+": key", got.record.Key, e.Key(id)), wantBytes(at+": head", got.record.Head, []byte("head of "+id)),
			sameLog(at, got.log, []store.Entry{{Seq: 1, Revision: 1, Data: []byte("entry of " + id)}}))
	}
	listed, err := listAll(ctx, s, e.kind, 50)
	bad = append(bad, err)
	count := map[string]int{}
	for _, it := range listed {
		count[it.Record.Key.ID]++
	}
	for _, id := range ids {
		bad = append(bad, wantEqual(fmt.Sprintf("times that %q is listed", id), count[id], 1))
		delete(count, id)
	}
	for id := range count {
		bad = append(bad, failf("list: want only what was created, got %q too", id))
	}
	return errors.Join(bad...)
}

func anyID(ctx context.Context, e *Env) error {
	s, other, err := e.Open2(ctx)
	if err != nil {
		return err
	}
	ids, err := storeIDs(ctx, e, s, awkwardIDs())
	if n := len(awkwardIDs()) - len(ids); n > 0 {
		e.Note("%d of %d awkward ids are refused by this store", n, len(awkwardIDs()))
	}
	return errors.Join(err, holdsIDs(ctx, e, other, ids))
}

func idsLiveApart(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	for _, group := range [][]string{{"name", "Name", "NAME"}, {"é", "e\u0301"}, {"x/y", "x", "x\\y"}, {"n", "n\x00", "n "}, {"..", "."}} {
		var actors []*actor
		for _, id := range group {
			a, err := e.owner(ctx, s, e.Key(id))
			if errors.Is(err, store.ErrInvalidID) {
				continue
			}
			if err != nil {
				return failf("among look-alikes %q: %w", group, err)
			}
			actors = append(actors, a)
		}
		if len(actors) == 0 {
			continue
		}
		for i, a := range actors {
			if err := a.advance(ctx, i+1); err != nil {
				return failf("among look-alikes %q: %w", group, err)
			}
		}
		if err := wantOK("delete one look-alike", s.Delete(ctx, actors[0].key, actors[0].fence)); err != nil {
			return err
		}
		for i, a := range actors[1:] {
			if err := errors.Join(a.advance(ctx, 1), holdsOnly(ctx, e, a.key, a.last, a.ack, uint64(i+4))); err != nil {
				return failf("among look-alikes %q: %w", group, err)
			}
		}
	}
	return nil
}

func randomIDs(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	alphabets := []string{"ab", "aA", "./\\", "\x00\x01 \t\n", "eé\u0301É", "%_-+", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "日本語🜁\u200b\u202e"}
	seen := map[string]bool{}
	var ids []string
	for range 60 {
		runes := []rune(alphabets[e.Rand.IntN(len(alphabets))])
		n := 1 + e.Rand.IntN(12)
		if e.Rand.IntN(4) == 0 {
			n = 60
		}
		var b strings.Builder
		for range n {
			b.WriteRune(runes[e.Rand.IntN(len(runes))])
		}
		if id := b.String(); len(id) <= store.MaxIDBytes && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	taken, err := storeIDs(ctx, e, s, ids)
	return errors.Join(err, holdsIDs(ctx, e, s, taken))
}

func kindsApart(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	keys := []store.Key{
		{Kind: e.kind, ID: "ab"},
		{Kind: e.SubKind("a"), ID: "b"},
		{Kind: e.SubKind("a"), ID: "ab"},
		{Kind: e.SubKind("ab"), ID: "ab"},
		{Kind: e.SubKind("-a"), ID: "b"},
		{Kind: e.kind, ID: "-ab"},
		{Kind: e.kind, ID: "a-b"},
		{Kind: e.SubKind("_a"), ID: "b"},
	}
	var bad []error
	for i, k := range keys {
		_, err := s.Create(ctx, k, store.Commit{ID: e.UUID(), Head: []byte(fmt.Sprint("head ", i))})
		bad = append(bad, wantOK("create "+k.String(), err))
	}
	perKind := map[store.Kind]int{}
	for i, k := range keys {
		perKind[k.Kind]++
		r, err := s.Load(ctx, k)
		bad = append(bad, wantOK("load "+k.String(), err), wantBytes("head of "+k.String(), r.Head, []byte(fmt.Sprint("head ", i))))
	}
	for _, k := range keys {
		listed, err := listAll(ctx, s, k.Kind, 2)
		bad = append(bad, err, wantEqual("records listed of kind "+string(k.Kind), len(listed), perKind[k.Kind]))
		for _, it := range listed {
			bad = append(bad, wantEqual("kind of a listed record", it.Record.Key.Kind, k.Kind))
		}
	}
	return errors.Join(bad...)
}

func refusedKeys(ctx context.Context, e *Env) error {
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	good, err := e.owner(ctx, s, e.Key("good"))
	if err != nil {
		return err
	}
	var bad []error
	for _, k := range []store.Key{
		e.Key(""), e.Key(strings.Repeat("x", store.MaxIDBytes+1)), e.Key("a\xff"), e.Key("\xed\xa0\x80"), e.Key("\xc0\xaf"),
		{Kind: "", ID: "a"},
		{Kind: "Upper", ID: "a"},
		{Kind: "a/b", ID: "a"},
		{Kind: "..", ID: "a"},
		{Kind: store.Kind(strings.Repeat("k", store.MaxKindBytes+1)), ID: "a"},
	} {
		a := &actor{e: e, s: s, key: k, fence: good.fence, mark: good.mark}
		for _, c := range a.calls() {
			bad = append(bad, wantKind(fmt.Sprintf("%s of kind %q id %q", c.name, k.Kind, k.ID), c.do(ctx, s), store.ErrInvalidID))
		}
	}
	_, err = s.List(ctx, store.Query{Kind: "../"})
	return errors.Join(append(bad, wantKind("list of a malformed kind", err, store.ErrInvalidID), good.advance(ctx, 1))...)
}
