package backend

import "testing"

func TestAPasswordInAStoreURLIsMasked(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"redis://h", "redis://h"},
		{"redis://:secret@h:1/2?prefix=p", "redis://:PASSWORD@h:1/2?prefix=p"},
		{"rediss://me:se:cr@et@h", "rediss://me:PASSWORD@h"},
		{"redis+sentinel://me:secret@a,b/main/0", "redis+sentinel://me:PASSWORD@a,b/main/0"},
		{"unix://:secret@/run/r.sock", "unix://:PASSWORD@/run/r.sock"},
		{"redis://me@h", "redis://me@h"},
		{"redi://:secret@h", "redi://:PASSWORD@h"},
		{"fs:/srv/a@b:c", "fs:/srv/a@b:c"},
		{"", ""},
	} {
		if got := Shown(c.url); got != c.want {
			t.Errorf("got %q for %q, want %q", got, c.url, c.want)
		}
	}
}
