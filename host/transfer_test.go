package host_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store"
)

func TestAnExportComesBackByteForByte(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	var tools atomic.Int64
	spec := r.spec(&script{answers: []any{useTool("echo", `{"html":"<b>&amp;\u2028</b>","big":9007199254740993}`), say("1 < 2 \u2028 ünï")}}, 1, 2)
	spec.Tools = []plugin.Tool{echoTool(&tools)}
	r.runOnce("s", spec)
	var out bytes.Buffer
	if err := r.host.Export(ctx, "s", &out); err != nil {
		t.Fatal(err)
	}
	id, err := r.host.Import(ctx, bytes.NewReader(out.Bytes()), "t")
	if err != nil || id != "t" {
		t.Fatalf("import: got %q and %v", id, err)
	}
	if r.raw("s") != r.raw("t") {
		t.Error("head and log of the imported session differ from the exported ones")
	}
	if a, b := r.record("s").Mark.Birth, r.record("t").Mark.Birth; a == b {
		t.Error("the imported session has the birth of the exported one")
	}
	if _, err := r.host.Import(ctx, bytes.NewReader(out.Bytes()), ""); !errors.Is(err, store.ErrExists) {
		t.Errorf("import over the session itself: got %v, want ErrExists", err)
	}
	r.runOnce("t", r.spec(&script{answers: []any{say("on")}}, 1, 1))
}

func TestADamagedExportIsRefusedAndCreatesNothing(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	r.runOnce("s", r.spec(&script{answers: []any{say("a")}}, 1, 1))
	var out bytes.Buffer
	if err := r.host.Export(ctx, "s", &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	damaged := map[string]string{
		"nothing":                   "",
		"something else":            "{}\n",
		"cut in the header":         out.String()[:20],
		"cut before the checksum":   strings.Join(lines[:len(lines)-2], ""),
		"without its last newline":  strings.TrimSuffix(out.String(), "\n"),
		"something behind it":       out.String() + "\n",
		"a line too few":            strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
		"a line twice":              strings.Join(append(append([]string{}, lines[:2]...), lines[1:]...), ""),
		"a changed entry":           strings.Replace(out.String(), `"text":"a"`, `"text":"b"`, 1),
		"a changed head":            strings.Replace(out.String(), `"iterations_started":1`, `"iterations_started":0`, 1),
		"a head that does not hold": strings.Replace(out.String(), `"runtime":{`, `"runtim":{`, 1),
	}
	for name, data := range damaged {
		if _, err := r.host.Import(ctx, strings.NewReader(data), "t"); !errors.Is(err, host.ErrExport) {
			t.Errorf("%s: got %v, want ErrExport", name, err)
		}
		if _, err := r.store.Load(ctx, store.SessionKey("t")); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%s: a session was created (%v)", name, err)
		}
	}
}

func TestALongLogIsExportedImportedAndForkedInBatches(t *testing.T) {
	r := newRig(t, nil)
	ctx := context.Background()
	p := &script{answers: []any{say(strings.Repeat("a", 3<<20))}}
	r.runOnce("s", r.spec(p, 8, 8))
	var out bytes.Buffer
	if err := r.host.Export(ctx, "s", &out); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Import(ctx, &out, "t"); err != nil {
		t.Fatal(err)
	}
	if r.raw("s") != r.raw("t") {
		t.Error("head and log of the imported session differ from the exported ones")
	}
	if err := r.host.Fork(ctx, "s", "u"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r.messages("s"), r.messages("u")); d != "" {
		t.Error("the fork's messages differ")
	}
	for _, id := range []string{"t", "u"} {
		if rec := r.record(id); rec.Holder != nil || rec.Mark.Revision < 2 {
			t.Errorf("%s is held (%v) or was made in one commit (revision %d)", id, rec.Holder, rec.Mark.Revision)
		}
	}
}

func TestAForkHasTheMessagesAndNoLoop(t *testing.T) {
	mem, st := newMemory(t)
	abandon(t, mem, "s")
	r := newRig(t, st)
	ctx := context.Background()
	before := r.raw("s")
	if err := r.host.Fork(ctx, "s", "f"); err != nil {
		t.Fatal(err)
	}
	if r.raw("s") != before {
		t.Error("the fork changed the session it was made from")
	}
	head := r.stored("f")
	if head.Loop != nil || head.Forked == nil || head.Forked.SessionID != "s" || head.Forked.Mark != r.record("s").Mark {
		t.Errorf("the fork's head is %+v, want no loop and where it comes from", head)
	}
	if d := cmp.Diff([]string{"c unknown"}, r.results("f")); d != "" {
		t.Errorf("results in the fork (-want +got):\n%s", d)
	}
	p := &script{answers: []any{say("on")}}
	r.runOnce("f", r.spec(p, 1, 1))
	if n := len(p.seen[0].Messages); n != 4 {
		t.Errorf("the fork's run sent %d messages, want the three of its origin and the objective", n)
	}
	if err := r.host.Fork(ctx, "none", "g"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a fork of nothing: got %v, want ErrNotFound", err)
	}
	if err := r.host.Fork(ctx, "s", "f"); !errors.Is(err, store.ErrExists) {
		t.Errorf("a fork onto a session: got %v, want ErrExists", err)
	}
}
