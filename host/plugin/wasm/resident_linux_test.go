package wasm

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/loophost/loophost/pluginapi"
)

// resident is how many bytes of an instance's memory are in memory: not reserved
// or opened, but taken from the system.
func resident(t testing.TB, in *instance) (n int64) {
	t.Helper()
	m, ok := in.memory.mem.(*mapped)
	if !ok {
		t.Fatalf("the memory is a %T", in.memory.mem)
	}
	first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.all))))
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(b)) {
		var from, to uint64
		var kib int64
		if k, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); k == 2 {
			inside = from >= first && to <= first+uint64(len(m.all))
		} else if k, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); inside && k == 1 {
			n += kib << 10
		}
	}
	return n
}

// bundledModule is a module that is built into the command, of Go.
func bundledModule(t testing.TB, name string) []byte {
	t.Helper()
	const dir = "../../../plugins/bundled/"
	packed, err := os.ReadFile(dir + name + ".wasm.gz")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	module, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// mostResident is what a warm Go instance may take, memory and the engine's part together.
const mostResident = 3 << 20

// BenchmarkWarmInstance is the memory of a warm Go instance after many calls: what
// is in memory of its linear memory ("MiB-resident"), what the host keeps on its
// heap for it ("MiB-heap"), and how long starting one takes.
func BenchmarkWarmInstance(b *testing.B) {
	for name, point := range map[string]pluginapi.HookPoint{"stop-when": pluginapi.AfterRound, "tool-guard": pluginapi.BeforeTool} {
		b.Run(name, func(b *testing.B) {
			p := warmed(b, name)
			linear, heap := perInstance(b, p, point, 2_000)
			for b.Loop() {
				in, err := p.start(b.Context(), time.Minute)
				if err != nil {
					b.Fatal(err)
				}
				in.close()
			}
			b.ReportMetric(float64(linear)/(1<<20), "MiB-resident")
			b.ReportMetric(float64(heap)/(1<<20), "MiB-heap")
		})
	}
}

// TestAStartedGoInstanceTakesAtMost3MiB is about what the host gives an instance: its
// image, and pages that are taken as they are used. How far the guest's own heap
// grows in thousands of calls is the guest's doing; the benchmark shows it.
func TestAStartedGoInstanceTakesAtMost3MiB(t *testing.T) {
	p := warmed(t, "stop-when")
	linear, heap := perInstance(t, p, pluginapi.AfterRound, 50)
	t.Logf("%d KiB of linear memory are resident, %d KiB are on the host's heap", linear>>10, heap>>10)
	if linear+heap > mostResident {
		t.Errorf("an instance takes %d KiB, want at most %d", (linear+heap)>>10, mostResident>>10)
	}
}

func warmed(t testing.TB, name string) *Plugin {
	t.Helper()
	module := bundledModule(t, name)
	config := map[string]string{"stop-when": `{"pattern":"never said"}`, "tool-guard": `{"rules":[{"tool":"x","action":"deny"}]}`}[name]
	p, err := newRuntime(t, Config{}).Load(t.Context(), Module{Wasm: module, Config: json.RawMessage(config), Grants: Grants{KV: true, Clock: true}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// perInstance makes calls in each of some instances and averages what they keep.
func perInstance(t testing.TB, p *Plugin, point pluginapi.HookPoint, calls int) (linear, heap int64) {
	t.Helper()
	const instances = 4
	message := pluginapi.Message{Role: pluginapi.RoleAssistant, Text: strings.Repeat("the usual text of an answer, ", 40)}
	docs := map[pluginapi.HookPoint]any{
		pluginapi.AfterRound: pluginapi.RoundEndDoc{Iteration: 1, Round: 1, Complete: true, Message: message, Results: []pluginapi.ToolResult{}},
		pluginapi.BeforeTool: pluginapi.ToolCall{ID: "call-1", Name: "read_file", Arguments: encode(t, map[string]string{"content": message.Text})},
	}
	input := &pluginapi.HookInput{Point: point, Session: session.Info, Document: encode(t, docs[point])}
	before := heapInUse()
	var all []*instance
	for range instances {
		in, err := p.start(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, in)
		o := order{op: pluginapi.OpHook, limit: time.Minute, session: session, take: func([]byte) error { return nil }}
		for range calls {
			o.input = hookInput(input)
			if _, _, err := in.serve(t.Context(), &o, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	heap = (heapInUse() - before) / instances
	for _, in := range all {
		linear += resident(t, in) / instances
		in.close()
	}
	return linear, heap
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
