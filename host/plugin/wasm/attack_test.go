package wasm

import (
	"encoding/binary"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/pluginapi"
)

// attack is a guest whose hook does harm and whose tool answers, so that a test
// sees what is left after the harm. docs/SANDBOX.md is written from these.
type attack struct {
	name string
	// body is what the hook runs: op is local 0, the size of the input local 1.
	body []byte
	// unmetered is body for a module that isn't metered, where the meter's could
	// outlast the test; nil: the same.
	unmetered []byte
	imports   []tinyImport
	pages     int  // of the memory limit; 0: attackPages
	slow      bool // it takes much of the host's time for what it is
	grants    Grants
	want      plugin.FaultKind // "": the call is answered
	// outlasts says that the guest goes on after its deadline where it isn't metered.
	outlasts bool
	sees     string // what the operator sees of it: the start of the fault, behind the plugin's name
	ends     string // what ends it
	closing  string // the same, where it isn't metered; "": no difference
}

const (
	attackLimit = 200 * time.Millisecond
	// attackPages is about the default limit, and a size that no other mapping has.
	attackPages = 1027
)

// tree calls itself twice for each level: 2^depth calls without a loop.
func tree(depth int32) []byte {
	self := func(n []byte) []byte { return join(n, ic(0), callFn(fnSelf)) }
	less := join(get(0), ic(1), []byte{0x6b})
	return join(
		get(0), ic(int32(pluginapi.OpHook)), []byte{0x46, 0x04, 0x40}, self(ic(1000+depth)), []byte{0x0f, 0x0b},
		get(0), ic(1000), []byte{0x46, 0x04, 0x40}, ic(0), []byte{0x0f, 0x0b},
		self(less), drop(), self(less),
	)
}

// fills writes the whole memory of so many bytes n times, without a loop, after
// growing it.
func fills(pages int32, n int) []byte {
	b := join(ic(pages-1), growMemory(), drop())
	for range n {
		b = join(b, ic(0), ic(1), ic(pages*pageSize), []byte{0xfc, 0x0b, 0})
	}
	return join(b, ic(0))
}

// sleepOneHour is a poll_oneoff of one clock; the function is import 0.
func sleepOneHour() []byte {
	hour := appendI64(nil, int64(time.Hour))
	return join(ic(2048), ic(1), []byte{0x36, 2, 16}, // the monotonic clock
		ic(2048), []byte{0x42}, hour, []byte{0x37, 3, 24},
		ic(2048), ic(4096), ic(1), ic(8192), callFn(0))
}

func appendI64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// attacks are those that run; modules that are refused are in TestLoadRefuses and
// bombs.
func attacks() []attack {
	page := ic(pageSize)
	poll := swapImport(0, tinyImport{wasiModule, "poll_oneoff", 4, true})
	random := swapImport(0, tinyImport{wasiModule, "random_get", 2, true})
	const soft = "closing on context end"
	return []attack{
		{
			name: "an endless loop", body: join(forever(nil), ic(0)), want: plugin.FaultTimeout,
			sees: "timeout: it did not answer in time",
			ends: "fuel", closing: soft,
		},
		{
			name: "a tree of calls without a loop", body: tree(60), unmetered: tree(27), want: plugin.FaultTimeout, outlasts: true,
			sees: "timeout: it did not answer in time",
			ends: "fuel", closing: "the guest itself; the caller is freed, the instance given up",
		},
		{
			name: "the same with vector operators", body: join(simd, tree(60)), unmetered: join(simd, tree(27)), want: plugin.FaultTimeout, outlasts: true,
			sees: "timeout: it did not answer in time",
			ends: "fuel", closing: "the guest itself; the caller is freed, the instance given up",
		},
		{
			name: "40 fills of 1 GiB of memory, without a loop", body: fills(16_384, 40), unmetered: fills(attackPages, 120), pages: 16_384, want: plugin.FaultTimeout, outlasts: true,
			sees: "timeout: it did not answer in time",
			ends: "fuel, a mebibyte at a time", closing: "the guest itself; the caller is freed, the instance given up",
		},
		{
			name: "an endless loop of memory.fill", body: join(forever(join(ic(0), ic(0), page, []byte{0xfc, 0x0b, 0})), ic(0)), want: plugin.FaultTimeout,
			sees: "timeout: it did not answer in time",
			ends: "fuel", closing: soft,
		},
		{
			name: "memory grown to the limit and touched, then a trap", body: join(fills(attackPages, 1), drop(), ic(1), growMemory(), drop(), unreachable()), want: plugin.FaultMemory, slow: true,
			sees: "memory: its memory may not grow over the limit",
			ends: "the limit: memory.grow answers -1, and the trap after it is told as memory",
		},
		{
			name: "memory grown page by page without end", body: join(forever(join(ic(1), growMemory(), drop())), ic(0)), want: plugin.FaultTimeout,
			sees: "timeout: it did not answer in time",
			ends: "the limit, then fuel", closing: "the limit, then " + soft,
		},
		{
			name: "100 MB of output", body: join(forever(join(ic(0), page, callFn(fnOutputWrite))), ic(0)), want: plugin.FaultOutput, slow: true,
			sees: "output: output over its limit of 16777216 bytes",
			ends: "the limit of output",
		},
		{
			name: "an error document without end", body: join(forever(join(ic(0), ic(4096), callFn(fnErrorWrite))), ic(1)), want: plugin.FaultOutput,
			sees: "output: error document over its limit of 65536 bytes",
			ends: "the limit of error documents",
		},
		{
			name: "a flood of log lines", body: join(forever(join(ic(1), ic(0), ic(100), callFn(fnLog))), ic(0)), want: plugin.FaultOutput,
			sees: "output: log over its limit of 65536 bytes",
			ends: "the limit of logs; an empty line costs 16 bytes of it",
		},
		{
			name: "a flood of host calls", body: join(forever(join(ic(1), ic(0), ic(0), callFn(fnHostCall), drop())), ic(0)), want: plugin.FaultHostCalls,
			sees: "host_calls: more than 1000 host calls in one call",
			ends: "the limit of host calls",
		},
		{
			name: "a trap", body: unreachable(), want: plugin.FaultTrap,
			sees: "trap: wasm error: unreachable",
			ends: "the engine",
		},
		{
			name: "recursion without end", body: join(ic(1), get(1), callFn(fnSelf)), want: plugin.FaultTrap, slow: true,
			sees: "trap: stack overflow",
			ends: "the engine's stack limit of 50 MB",
		},
		{
			name: "a pointer outside of its memory", body: join(ic(-8), ic(16), callFn(fnOutputWrite), ic(0)), want: plugin.FaultTrap,
			sees: "trap: output_write: the range of 16 bytes at 4294967288 is not within its memory of 65536 bytes",
			ends: "the check of every range",
		},
		{
			name: "a WASI count that overflows", body: join(ic(0), ic(0), ic(0x10000000), ic(0), callFn(0)), imports: poll, want: plugin.FaultTrap,
			sees: "trap: runtime error: index out of range",
			ends: "the engine: the host function fails, not the host",
		},
		{
			name: "sleep of an hour, clock granted", body: sleepOneHour(), imports: poll, grants: Grants{Clock: true}, want: plugin.FaultTimeout,
			sees: "timeout: it did not answer in time",
			ends: "the deadline ends the sleep",
		},
		{
			name: "sleep without end, no clock granted", body: join(forever(join(sleepOneHour(), drop())), ic(0)), imports: poll, want: plugin.FaultTimeout,
			sees: "timeout: it did not answer in time",
			ends: "fuel: its clock stands still and sleep takes no time", closing: soft,
		},
		{
			name: "random numbers without end", body: join(forever(join(ic(0), page, callFn(0), drop())), ic(0)), imports: random, grants: Grants{Random: true}, want: plugin.FaultTimeout,
			sees: "timeout: it did not answer in time",
			ends: "fuel; a request is served 64 KiB at a time", closing: soft,
		},
		{
			name: "a host call that was not granted", body: denied(), want: "",
			sees: "nothing; the guest gets the status of a denied call",
			ends: "the guest is told that it is denied; nothing happens",
		},
		{
			name: "an operation its manifest promises and it does not know", body: ic(2), want: plugin.FaultMalformed,
			sees: "malformed: it does not know the operation hook, which its manifest promises",
			ends: "the contract",
		},
		{
			name: "an answer that is not the document asked for", body: join(write(`{"note":"x"}`), ic(0)), want: plugin.FaultMalformed,
			sees: "malformed: decision:",
			ends: "strict decoding",
		},
	}
}

// denied puts a key, and answers {} where the host said HostDenied.
func denied() []byte {
	status := int32(pluginapi.HostDenied)
	return join(ic(int32(pluginapi.HostKVPut)), ic(0), ic(4), callFn(fnHostCall), ic(status), []byte{0x47, 0x04, 0x40}, unreachable(), []byte{0x0b}, answer204())
}

// write puts a text at address 0 and writes it.
func write(text string) []byte {
	padded := []byte(text + "    ")
	var b []byte
	for i := 0; i < len(text); i += 4 {
		b = join(b, ic(int32(i)), ic(int32(binary.LittleEndian.Uint32(padded[i:]))), []byte{0x36, 0, 0})
	}
	return join(b, ic(0), ic(int32(len(text))), callFn(fnOutputWrite))
}

// mark is where a hook leaves a byte for the tool to find.
const mark = 1024

// module is the attack's guest. Its tool answers with the number of hook calls
// that its instance has seen, which is 0 after every fault.
func (a attack) module(metered bool) tiny {
	body := a.body
	if !metered && a.unmetered != nil {
		body = a.unmetered
	}
	tool := join(
		write(`{"text":"`),
		ic(0), ic(mark), []byte{0x2d, 0, 0}, ic(int32('0')), []byte{0x6a, 0x3a, 0, 0}, ic(0), ic(1), callFn(fnOutputWrite),
		write(`"}`), ic(0), []byte{0x0f})
	hook := join(ic(mark), ic(mark), []byte{0x2d, 0, 0}, ic(1), []byte{0x6a, 0x3a, 0, 0}, body)
	return tiny{imports: a.imports, plain: !metered, call: join(
		get(0), ic(int32(pluginapi.OpTool)), []byte{0x46, 0x04, 0x40}, tool, []byte{0x0b}, hook)}
}

func (a attack) load(t testing.TB, metered bool, change func(*pluginapi.Manifest)) *Plugin {
	t.Helper()
	limits := Limits{HookTimeout: time.Minute, MemoryPages: max(a.pages, attackPages)}
	if a.want == plugin.FaultTimeout {
		limits.HookTimeout = attackLimit
	}
	p, err := loadTiny(t, a.module(metered), Config{Limits: limits}, a.grants, change)
	if err != nil {
		t.Fatal(err)
	}
	if p.Metered() != metered {
		t.Fatalf("metered is %v, want %v", p.Metered(), metered)
	}
	return p
}

var modes = []struct {
	name    string
	metered bool
}{{"metered", true}, {"closing on context end", false}}

// TestAttacks runs each attack twice, with a call that works after each. Both ways
// of bounding a guest's time are tried, though a module that may run is metered.
func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		for _, mode := range modes {
			t.Run(a.name+", "+mode.name, func(t *testing.T) {
				outlasts := a.outlasts && !mode.metered
				if outlasts {
					// Go's collector would wait for a guest that never looks up, and everyone
					// for the collector; docs/SANDBOX.md says so. Here it's about the caller.
					defer debug.SetGCPercent(debug.SetGCPercent(-1))
				}
				p := a.load(t, mode.metered, nil)
				for range 2 {
					start := time.Now()
					_, err := hook(t.Context(), p, "", "")
					took := time.Since(start)
					if a.want == "" {
						if err != nil {
							t.Fatalf("got %v, want an answer", err)
						}
						continue
					}
					f := wantFault(t, err, a.want)
					if want := "plugin guest: " + a.sees; !strings.HasPrefix(f.Error(), want) {
						t.Errorf("the operator sees %q, want it to start with %q", f.Error(), want)
					}
					if a.want == plugin.FaultTimeout {
						// The promise is 50 ms; a machine that runs other tests may wake us later.
						t.Logf("free %v after the deadline: %v", (took - attackLimit).Round(time.Microsecond), f)
						if took < attackLimit || took > attackLimit+3*time.Second {
							t.Errorf("the caller was free after %v, want soon after %v", took, attackLimit)
						}
					} else {
						t.Logf("ended after %v: %v", took.Round(time.Microsecond), f)
					}
					p.mu.Lock()
					abandoned := p.abandoned
					p.mu.Unlock()
					if outlasts && abandoned != 1 {
						t.Errorf("%d instances are given up, want 1: the guest should still run", abandoned)
					}
					if got := ask(t, p, "", ""); got != "0" {
						t.Errorf("the next call found %s calls in its instance, want 0: a broken instance was used again", got)
					}
					if outlasts {
						break // two of them would take both processors of a small machine
					}
				}
			})
		}
	}
}
