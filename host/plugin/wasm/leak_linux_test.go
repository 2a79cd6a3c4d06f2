package wasm

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// process is a line of /proc/self/status in bytes.
func process(t testing.TB, line string) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), line+":")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// reserved is how much address space guests' memories of so many pages take,
// counted by the size that such a reservation has and nothing else.
func reserved(t testing.TB, pages uint64) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	// A reservation is one mapping, or two that touch: what is open, and the rest.
	var start, end uint64
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		var perm string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perm); err != nil {
			t.Fatal(err)
		}
		switch {
		case perm == "rw-p":
			start, end = from, to
		case perm == "---p" && from == end && to-start == pages*pageSize, perm == "---p" && to-from == pages*pageSize:
			n++
		}
	}
	return n
}

func TestAStartThatFailsGivesItsMemoryBack(t *testing.T) {
	limits := Limits{MemoryPages: attackPages, StartTimeout: 100 * time.Millisecond}
	exit := swapImport(0, tinyImport{wasiModule, "proc_exit", 1, false})
	for name, m := range map[string]tiny{
		"a trap in the start function":    {call: ic(0), start: unreachable()},
		"an exit in the start function":   {call: ic(0), start: join(ic(0), callFn(0)), imports: exit},
		"an endless start function":       {call: ic(0), start: forever(nil)},
		"an endless one, not metered":     {call: ic(0), start: forever(nil), plain: true},
		"a trap in _initialize":           {call: ic(0), init: unreachable()},
		"data that lies outside":          {call: ic(0), after: sec(secData, join([]byte{1, 0}, ic(65536), []byte{0x0b, 1, 0}))},
		"a module the engine breaks over": {call: ic(0), table: true, extra: sec(secElement, vec([][]byte{{1, 0, 1, 0}}))},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, Config{Limits: limits})
			if m.plain {
				r.rewrite = refuseToMeter
			}
			for range 3 {
				_, err := r.Load(t.Context(), Module{Wasm: m.wasm(), SidecarManifest: encode(t, manifest())})
				wantFault(t, err, plugin.FaultStart)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := reserved(t, attackPages); n != 0 {
				t.Errorf("%d of 3 memories are still there", n)
			}
		})
	}
	p, err := loadTiny(t, tiny{call: answer204()}, Config{Limits: limits}, Grants{}, func(m *pluginapi.Manifest) { m.Lease = pluginapi.LeasePooled })
	if err != nil {
		t.Fatal(err)
	}
	if n := reserved(t, attackPages); n != 1 {
		t.Errorf("one warm instance has %d memories: the test counts wrongly", n)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := reserved(t, attackPages); n != 0 {
		t.Errorf("%d memories are left of a closed plugin", n)
	}
}

// TestMemoryComesBack makes 200 hostile calls and looks at what the process keeps.
func TestMemoryComesBack(t *testing.T) {
	var plugins, slow []*Plugin
	for _, a := range attacks() {
		switch {
		case a.want == "" || a.want == plugin.FaultTimeout: // those would take a minute
		case a.slow:
			slow = append(slow, a.load(t, true, nil))
		default:
			plugins = append(plugins, a.load(t, true, nil))
		}
	}
	before := process(t, "VmRSS")
	for i := range 200 {
		p := plugins[i%len(plugins)]
		if i%20 == 0 {
			p = slow[i/20%len(slow)]
		}
		if _, err := hook(t.Context(), p, "", ""); err == nil {
			t.Fatal("no fault")
		}
	}
	for _, p := range append(plugins, slow...) {
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	debug.FreeOSMemory()
	after := process(t, "VmRSS")
	t.Logf("%d MiB are resident, before it were %d MiB", after>>20, before>>20)
	if after-before > 64<<20 {
		t.Errorf("%d MiB more are resident after 200 hostile calls", (after-before)>>20)
	}
	if n := reserved(t, attackPages); n != 0 {
		t.Errorf("%d memories of guests are still there", n)
	}
}
