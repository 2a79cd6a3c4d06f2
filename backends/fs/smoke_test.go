package fs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loophost/loophost/host/store"
)

func TestSmoke(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := openStore(t, dir)
	c1 := commit(store.Mark{}, "{}", "1", "not json\n", "")
	a := must[store.Ack](t)(s.Create(ctx, key, c1))
	f, rec := acquire(t, s, key, claim("me"))
	t.Logf("%+v", rec)
	for range 300 {
		a = must[store.Ack](t)(s.Commit(ctx, key, f, commit(a.Mark, `{"a":1}`, "x", `{"b":2}`)))
	}
	s2 := openStore(t, dir)
	r2 := must[store.Record](t)(s2.Load(ctx, key))
	if r2.Mark != a.Mark {
		t.Errorf("got %+v want %+v", r2.Mark, a.Mark)
	}
	if r2.Holder == nil { t.Error("no holder") }
	_, _, err := s2.Acquire(ctx, key, claim("b"))
	wantKind(t, "busy", err, store.ErrBusy)
	page := must[store.LogPage](t)(s2.ReadLog(ctx, key, 400, 3))
	t.Logf("%+v", page)
	rep := must[store.CheckReport](t)(s2.Check(ctx, key))
	if len(rep.Findings) != 0 { t.Errorf("%+v", rep) }
	t.Logf("%+v", rep)
	wantKind(t, "release", s.Release(ctx, key, f), nil)
	f3, _ := acquire(t, s2, key, claim("c"))
	a = must[store.Ack](t)(s2.Commit(ctx, key, f3, commit(a.Mark, "h")))
	l := must[store.ListPage](t)(s.List(ctx, store.Query{Kind: store.KindSession}))
	if len(l.Items) != 1 || !cmp.Equal(l.Items[0].Record.Mark, a.Mark) { t.Errorf("%+v", l) }
	wantKind(t, "delete", s2.Delete(ctx, key, f3), nil)
	_, err = s.Load(ctx, key)
	wantKind(t, "load", err, store.ErrNotFound)
	b := must[store.Ack](t)(s.Create(ctx, key, c1))
	if b.Mark.Birth <= a.Mark.Birth { t.Error("birth") }
	if len(rep.SetAside) != 0 { t.Errorf("%+v", rep) }
}
