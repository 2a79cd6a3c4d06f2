package wasm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

func wantFault(t *testing.T, err error, kind plugin.FaultKind) *plugin.Fault {
	t.Helper()
	var f *plugin.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault of kind %s", err, kind)
	}
	if f.Kind != kind {
		t.Fatalf("got %v, want a fault of kind %s", err, kind)
	}
	return f
}

// simd is v128.const 0; drop.
var simd = join([]byte{0xfd, 0x0c}, make([]byte, 16), drop())

func TestHostileCallsEndAsFaults(t *testing.T) {
	limits := Limits{HookTimeout: time.Minute, MemoryPages: 4, OutputBytes: 1 << 20}
	page := ic(65536)
	for name, c := range map[string]struct {
		body []byte
		want plugin.FaultKind
	}{
		"a trap":                               {unreachable(), plugin.FaultTrap},
		"an endless loop":                      {join(forever(nil), ic(0)), plugin.FaultTimeout},
		"an endless loop of imports":           {join(forever(join(callFn(fnDeadline), drop())), ic(0)), plugin.FaultTimeout},
		"an endless loop of bulk memory":       {join(forever(join(ic(0), ic(0), page, []byte{0xfc, 0x0b, 0})), ic(0)), plugin.FaultTimeout},
		"an endless loop of reads":             {join(forever(join(ic(0), page, ic(0), callFn(fnInputRead), drop())), ic(0)), plugin.FaultTimeout},
		"input read into nowhere":              {join(ic(65530), ic(7), ic(0), callFn(fnInputRead)), plugin.FaultTrap},
		"input read at the last address":       {join(ic(-1), ic(2), ic(0), callFn(fnInputRead)), plugin.FaultTrap},
		"output from nowhere":                  {join(ic(65536), ic(1), callFn(fnOutputWrite), ic(0)), plugin.FaultTrap},
		"output of a negative length":          {join(ic(0), ic(-1), callFn(fnOutputWrite), ic(0)), plugin.FaultTrap},
		"an error document from nowhere":       {join(ic(-16), ic(32), callFn(fnErrorWrite), ic(1)), plugin.FaultTrap},
		"a log line from nowhere":              {join(ic(0), ic(70000), ic(70000), callFn(fnLog), ic(0)), plugin.FaultTrap},
		"a host call from nowhere":             {join(ic(1), ic(65536), ic(1), callFn(fnHostCall)), plugin.FaultTrap},
		"a reply read into nowhere":            {join(ic(65536), ic(1), ic(0), callFn(fnReplyRead)), plugin.FaultTrap},
		"output without end":                   {join(forever(join(ic(0), page, callFn(fnOutputWrite))), ic(0)), plugin.FaultOutput},
		"an error document without end":        {join(forever(join(ic(0), ic(4096), callFn(fnErrorWrite))), ic(1)), plugin.FaultOutput},
		"log lines without end":                {join(forever(join(ic(1), ic(0), ic(100), callFn(fnLog))), ic(0)), plugin.FaultOutput},
		"empty log lines without end":          {join(forever(join(ic(1), ic(0), ic(0), callFn(fnLog))), ic(0)), plugin.FaultOutput},
		"host calls without end":               {join(forever(join(ic(1), ic(0), ic(0), callFn(fnHostCall), drop())), ic(0)), plugin.FaultHostCalls},
		"unknown host calls without end":       {join(forever(join(ic(99), ic(0), ic(0), callFn(fnHostCall), drop())), ic(0)), plugin.FaultHostCalls},
		"memory grown to the limit, then trap": {join(ic(3), growMemory(), drop(), ic(1), growMemory(), drop(), unreachable()), plugin.FaultMemory},
		"no answer":                            {ic(0), plugin.FaultMalformed},
		"a status that doesn't exist":          {ic(3), plugin.FaultMalformed},
		"a negative status":                    {ic(-1), plugin.FaultMalformed},
		"unsupported, against its manifest":    {ic(2), plugin.FaultMalformed},
		"an error without a document":          {ic(1), plugin.FaultMalformed},
		"an answer of zero bytes":              {join(ic(0), ic(8), callFn(fnOutputWrite), ic(0)), plugin.FaultMalformed},
	} {
		for _, mode := range []string{"metered", "closing"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				limits := limits
				if c.want == plugin.FaultTimeout {
					limits.HookTimeout = 300 * time.Millisecond
				}
				p, err := loadTiny(t, tiny{call: c.body, plain: mode == "closing"}, Config{Limits: limits}, Grants{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if p.Metered() != (mode == "metered") {
					t.Fatalf("metered is %v", p.Metered())
				}
				for range 2 { // the second call has an instance of its own, and ends as the first
					start := time.Now()
					_, err := hook(t.Context(), p, "", "")
					f := wantFault(t, err, c.want)
					if f.Plugin != "guest" || !strings.HasPrefix(f.Digest, "sha256:") || strings.Contains(f.Error(), "\n") {
						t.Errorf("got %q, want one line with the plugin's name and digest", f.Error())
					}
					if d := time.Since(start); d > limits.HookTimeout+5*time.Second {
						t.Errorf("took %v", d)
					}
				}
			})
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	ok := ic(0)
	for name, c := range map[string]struct {
		m    tiny
		man  func(*pluginapi.Manifest)
		kind plugin.FaultKind
		says string
	}{
		"an ABI of another version":              {m: tiny{call: ok, name: "lh2_call"}, kind: plugin.FaultLoad, says: "lh2_call"},
		"a host module of another version":       {m: tiny{call: ok, imports: swapImport(0, tinyImport{"lh2", "input_read", 3, true})}, kind: plugin.FaultLoad, says: "lh2.input_read"},
		"a module without the entry point":       {m: tiny{call: ok, name: "run"}, kind: plugin.FaultLoad, says: "lh1_call"},
		"a module that hides its memory":         {m: tiny{call: ok, noMem: true}, kind: plugin.FaultLoad, says: "memory"},
		"an import that isn't offered":           {m: tiny{call: ok, imports: swapImport(0, tinyImport{"lh1", "http_fetch", 3, true})}, kind: plugin.FaultLoad, says: "lh1.http_fetch"},
		"an import from another module":          {m: tiny{call: ok, imports: swapImport(0, tinyImport{"env", "system", 3, true})}, kind: plugin.FaultLoad, says: "env.system"},
		"an import of the meter's own function":  {m: tiny{call: ok, imports: swapImport(0, tinyImport{"lh1_fuel", "refill", 3, true})}, kind: plugin.FaultLoad, says: "lh1_fuel.refill"},
		"an import with another signature":       {m: tiny{call: ok, imports: swapImport(1, tinyImport{"lh1", "output_write", 3, true})}, kind: plugin.FaultLoad, says: "output_write"},
		"a WASI function that doesn't exist":     {m: tiny{call: ok, imports: swapImport(0, tinyImport{wasiModule, "proc_exec", 3, true})}, kind: plugin.FaultStart, says: "proc_exec"},
		"more memory than the limit":             {m: tiny{call: ok, pages: 5}, kind: plugin.FaultLoad, says: "5 pages"},
		"more memory than the manifest allows":   {m: tiny{call: ok, pages: 2}, man: func(m *pluginapi.Manifest) { m.Limits = &pluginapi.Limits{MemoryPages: 1} }, kind: plugin.FaultLoad, says: "2 pages"},
		"code that doesn't validate":             {m: tiny{call: drop()}, kind: plugin.FaultLoad},
		"table.grow, which no limit would bound": {m: tiny{call: join([]byte{0xd0, 0x70}, ic(1<<27), []byte{0xfc, 0x0f, 0}), table: true}, kind: plugin.FaultLoad},
		"a passive element segment":              {m: tiny{call: ok, table: true, extra: sec(9, vec([][]byte{{1, 0, 1, 0}}))}, kind: plugin.FaultStart, says: "the engine broke"},
		"a trap in the start function":           {m: tiny{call: ok, start: unreachable()}, kind: plugin.FaultStart, says: "trap"},
		"a trap in _initialize":                  {m: tiny{call: ok, init: unreachable()}, kind: plugin.FaultStart, says: "trap"},
		"an endless start function":              {m: tiny{call: ok, start: forever(nil)}, kind: plugin.FaultStart, says: "timeout"},
		"an endless _initialize":                 {m: tiny{call: ok, init: forever(nil)}, kind: plugin.FaultStart, says: "timeout"},
		"an endless unmetered _initialize":       {m: tiny{call: ok, init: forever(nil), plain: true}, kind: plugin.FaultStart, says: "timeout"},
		"an endless unmetered start function":    {m: tiny{call: ok, start: forever(nil), plain: true}, kind: plugin.FaultStart, says: "timeout"},
		"a manifest of a later API":              {m: tiny{call: ok}, man: func(m *pluginapi.Manifest) { m.APIMin, m.APIMax = 9, 9 }, kind: plugin.FaultLoad, says: "API"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadTiny(t, c.m, Config{Limits: Limits{MemoryPages: 4, StartTimeout: 200 * time.Millisecond}}, Grants{}, c.man)
			if f := wantFault(t, err, c.kind); !strings.Contains(f.Error(), c.says) {
				t.Errorf("got %q, want it to name %q", f.Error(), c.says)
			}
		})
	}
}

func TestLoadRefusesDamagedModules(t *testing.T) {
	r := newRuntime(t, Config{})
	man := encode(t, manifest())
	good := tiny{call: join(ic(0), ic(0), callFn(fnOutputWrite), ic(0))}.wasm()
	for n := range good {
		if p, err := r.Load(t.Context(), Module{Wasm: good[:n], SidecarManifest: man}); err == nil {
			t.Errorf("the first %d of %d bytes were loaded as %v", n, len(good), p.Info())
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x55
		// It may still be a module; what counts is that nothing but an error comes of it.
		if p, err := r.Load(t.Context(), Module{Wasm: bad, SidecarManifest: man}); err == nil {
			_, _ = hook(t.Context(), p, "", "")
			_ = p.Close(t.Context())
		}
	}
}

func TestLoadTellsADigestThatIsNotApproved(t *testing.T) {
	m := tiny{call: ic(0)}
	_, err := newRuntime(t, Config{}).Load(t.Context(), Module{Path: "x.wasm", Wasm: m.wasm(), SidecarManifest: encode(t, manifest()), Digest: "sha256:00"})
	f := wantFault(t, err, plugin.FaultLoad)
	if !errors.Is(err, ErrDigest) || !strings.Contains(f.Error(), Digest(m.wasm())) || !strings.Contains(f.Error(), "sha256:00") || f.Plugin != "x.wasm" {
		t.Errorf("got %q of plugin %q", f.Error(), f.Plugin)
	}
}

func TestGrowingMemoryWithinTheLimitIsNoFault(t *testing.T) {
	// (module grows by 3 pages, then writes {} from the last one)
	body := join(ic(3), growMemory(), drop(), ic(1), growMemory(), drop(),
		ic(262140), ic(0x7d7b), []byte{0x36, 0, 0}, ic(262140), ic(2), callFn(fnOutputWrite), ic(0))
	p, err := loadTiny(t, tiny{call: body}, Config{Limits: Limits{MemoryPages: 4}}, Grants{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, stats, err := p.Hook().Run(t.Context(), session, &pluginapi.HookInput{Point: pluginapi.BeforeTool})
	if err != nil || d.Action != "" || stats.PeakMemory != 4*pageSize || stats.BytesOut != 2 {
		t.Errorf("got %+v, %+v, %v", d, stats, err)
	}
}

func TestRecursionWithoutEndIsATrap(t *testing.T) {
	p, err := loadTiny(t, tiny{call: join(get(0), get(1), callFn(fnSelf))}, Config{Limits: Limits{HookTimeout: time.Minute}}, Grants{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = hook(t.Context(), p, "", "")
	if f := wantFault(t, err, plugin.FaultTrap); !strings.Contains(f.Error(), "stack overflow") {
		t.Errorf("got %q, want the stack overflow told", f.Error())
	}
}

// A tree of calls without a loop: closing on context end would never see it.
func TestACallTreeWithoutLoopsEndsOnTime(t *testing.T) {
	less := join(get(0), get(1), ic(1), []byte{0x6b}, callFn(fnSelf)) // lh1_call(op, n-1)
	tree := join(get(1), []byte{0x45, 0x04, 0x7f}, ic(0), []byte{0x05}, less, drop(), less, []byte{0x0b})
	p, err := loadTiny(t, tiny{call: tree}, Config{Limits: Limits{HookTimeout: 100 * time.Millisecond}}, Grants{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = hook(t.Context(), p, "", "")
	wantFault(t, err, plugin.FaultTimeout)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abandoned != 0 {
		t.Error("the guest did not end by itself")
	}
}
