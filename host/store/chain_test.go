package store_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/loophost/loophost/host/store"
)

// written is what a chain is made of, as the port's text has it.
func written(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// entries is the same for a commit, whose number of entries stands between.
func entries(before, id, head string, list ...string) string {
	h := sha256.New()
	for _, p := range []string{"commit", before, id, head} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(list))))
	for _, p := range list {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func commitOf(id, head string, list ...string) store.Commit {
	c := store.Commit{ID: id, Head: []byte(head)}
	for _, e := range list {
		c.Entries = append(c.Entries, []byte(e))
	}
	return c
}

func TestAChainIsTheHashOfEachPartWithItsLength(t *testing.T) {
	long := strings.Repeat("f", 1000) // longer than any that is hashed in one piece
	for _, c := range []struct {
		name, before, id, head string
		entries                []string
	}{
		{"nothing at all", "", "", "", nil},
		{"a first commit", "", "id", "{}", []string{"one"}},
		{"several entries, one of them empty", strings.Repeat("a", 64), "id", "head", []string{"", "two", long}},
		{"no entry", strings.Repeat("a", 64), "id", long, nil},
		{"long names", long, long, "head", []string{"one", "two"}},
	} {
		got, want := store.Chain(c.before, commitOf(c.id, c.head, c.entries...)), entries(c.before, c.id, c.head, c.entries...)
		if got != want {
			t.Errorf("%s: got chain %s, want %s", c.name, got, want)
		}
	}
	if got, want := store.ChainNever("before", "id"), written("never", "before", "id"); got != want {
		t.Errorf("a never: got chain %s, want %s", got, want)
	}
}

// storedContent was worked out apart from this code: what stores hold must stay valid.
const storedContent = "189470dc4033c76cd70ef21c1cf4ffd7e0126a2356ed20a9416b1967eb440008"

func TestBothHashesInOneGoAreTheSameAsEachAlone(t *testing.T) {
	c := commitOf("id", "head", "one", "two")
	c.After = store.Mark{Birth: 7, Revision: 3, Chain: strings.Repeat("a", 64)}
	c.Require = store.Durability{Level: store.LevelPower, Replicas: 2}
	if got := store.ContentHash(c); hex.EncodeToString(got[:]) != storedContent {
		t.Errorf("got content %x, want the %s that stores hold", got, storedContent)
	}
	for _, before := range []string{c.After.Chain, "", strings.Repeat("b", 64)} {
		chain, content := store.Hashes(before, c)
		if want := store.Chain(before, c); chain != want {
			t.Errorf("after %q: got chain %s, want %s", before, chain, want)
		}
		if want := store.ContentHash(c); content != want {
			t.Errorf("after %q: got content %x, want %x", before, content, want)
		}
	}
}

func TestContentDiffersWithEveryFieldOfACommit(t *testing.T) {
	base := func() store.Commit {
		c := commitOf("id", "head", "one")
		c.After, c.Require = store.Mark{Birth: 1, Revision: 1, Chain: "a"}, store.Durability{Level: store.LevelProcess}
		return c
	}
	seen := map[[32]byte]string{store.ContentHash(base()): "the commit itself"}
	for name, change := range map[string]func(*store.Commit){
		"another id":           func(c *store.Commit) { c.ID = "di" },
		"another head":         func(c *store.Commit) { c.Head = []byte("daeh") },
		"another entry":        func(c *store.Commit) { c.Entries[0] = []byte("two") },
		"one entry more":       func(c *store.Commit) { c.Entries = append(c.Entries, nil) },
		"another birth":        func(c *store.Commit) { c.After.Birth++ },
		"another revision":     func(c *store.Commit) { c.After.Revision++ },
		"another chain before": func(c *store.Commit) { c.After.Chain = "b" },
		"another level":        func(c *store.Commit) { c.Require.Level = store.LevelPower },
		"a replica more":       func(c *store.Commit) { c.Require.Replicas++ },
	} {
		c := base()
		change(&c)
		sum := store.ContentHash(c)
		if other, there := seen[sum]; there {
			t.Errorf("%s has the content hash of %s", name, other)
		}
		seen[sum] = name
	}
}
