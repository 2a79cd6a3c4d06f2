package wasm

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/tetratelabs/wazero"
)

// segmented is a module with two pages of memory that are filled by segments.
func segmented(segs ...dataSegment) []byte {
	var all [][]byte
	for _, s := range segs {
		all = append(all, join([]byte{0, 0x41}, appendI32(nil, uint32(s.at)), []byte{0x0b}, str(string(s.data))))
	}
	return join(preamble, sec(5, []byte{1, 0, 2}), sec(7, vec([][]byte{join(str("memory"), []byte{2, 0})})), sec(11, vec(all)))
}

// memoryOf is a module's memory once it is instantiated; nil: it can't be.
func memoryOf(t testing.TB, module []byte) []byte {
	t.Helper()
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	mod, err := rt.Instantiate(t.Context(), module)
	var memory []byte
	if err == nil {
		memory, _ = mod.Memory().Read(0, mod.Memory().Size())
		memory = bytes.Clone(memory)
	}
	check(t, rt.Close(t.Context()))
	return memory
}

func TestSegmentsAreMergedWhereThatChangesNothing(t *testing.T) {
	one, two := []byte("one"), []byte("two")
	cases := []struct {
		name   string
		module []byte
		want   int // segments that are left; -1: the module is left as it is
	}{
		{"neighbours", segmented(dataSegment{8, one}, dataSegment{11, two}), 1},
		{"a short gap", segmented(dataSegment{8, one}, dataSegment{11 + maxGap, two}), 1},
		{"a long gap", segmented(dataSegment{8, one}, dataSegment{12 + maxGap, two}), 2},
		{"another order", segmented(dataSegment{900, two}, dataSegment{0, one}, dataSegment{903, one}, dataSegment{3, two}), 2},
		{"places of several bytes", segmented(dataSegment{63, one}, dataSegment{66, two}, dataSegment{8191, one}, dataSegment{65536, two}), 3},
		{"behind the end of memory", segmented(dataSegment{131010, one}, dataSegment{131070, two}), 1},
		{"a place above 2 GiB", segmented(dataSegment{0, one}, dataSegment{1<<32 - 3, two}), 2},
		{"no segment", segmented(), 0},
		{"two that overlap", segmented(dataSegment{8, one}, dataSegment{10, two}), -1},
		{"an empty one", segmented(dataSegment{8, one}, dataSegment{1 << 20, nil}), -1},
		{"no data section", join(preamble, sec(5, []byte{1, 0, 2})), -1},
		{"a data count", join(preamble, sec(5, []byte{1, 0, 2}), sec(12, []byte{2}), sec(11, vec([][]byte{{0, 0x41, 0, 0x0b, 1, 7}, {0, 0x41, 1, 0x0b, 1, 8}}))), -1},
		{"a passive one", join(preamble, sec(5, []byte{1, 0, 2}), sec(11, vec([][]byte{{0, 0x41, 0, 0x0b, 1, 7}, {1, 1, 8}}))), -1},
		{"a place from a global", join(preamble, sec(5, []byte{1, 0, 2}), sec(11, vec([][]byte{{0, 0x23, 0, 0x0b, 1, 7}}))), -1},
		{"a section that ends too early", join(preamble, sec(5, []byte{1, 0, 2}), sec(11, []byte{1, 0, 0x41, 0, 0x0b, 9, 7})), -1},
		{"no module", one, -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := mergeData(bytes.Clone(c.module))
			if c.want < 0 {
				if !bytes.Equal(got, c.module) {
					t.Errorf("got %x, want %x as it was", got, c.module)
				}
				return
			}
			secs, err := sections(got)
			check(t, err)
			r := &reader{b: secs[len(secs)-1].body}
			if n := r.count(); n != c.want {
				t.Errorf("got %d segments, want %d", n, c.want)
			}
			if want := memoryOf(t, c.module); !bytes.Equal(memoryOf(t, got), want) {
				t.Error("the memory is another one")
			}
		})
	}
}

// FuzzMergeData: a module has the same memory after its segments were merged, or
// fails as before.
func FuzzMergeData(f *testing.F) {
	seed := func(numbers ...uint32) {
		var b []byte
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		f.Add(b)
	}
	seed(0, 3, 3, 9, 77, 1)
	seed(900, 4, 0, 4, 904, 60, 1030, 8)
	seed(131071, 1, 131072, 0, 5, 5)
	seed(131071, 2, 1<<32-1, 200)
	f.Fuzz(func(t *testing.T, plan []byte) {
		var segs []dataSegment
		for ; len(plan) >= 8; plan = plan[8:] {
			at, size := binary.LittleEndian.Uint32(plan), binary.LittleEndian.Uint32(plan[4:])%300
			data := bytes.Repeat([]byte{byte(len(plan) / 8)}, int(size))
			segs = append(segs, dataSegment{at: uint64(at), data: data})
		}
		module := segmented(segs...)
		got := mergeData(module)
		if !bytes.Equal(memoryOf(t, got), memoryOf(t, module)) {
			t.Errorf("%d segments make another memory when merged", len(segs))
		}
	})
}

// TestTheGoLinkersSegmentsAreMerged keeps starts cheap: some ten thousand segments
// were most of what reading and instantiating a Go guest cost.
func TestTheGoLinkersSegmentsAreMerged(t *testing.T) {
	secs, err := sections(mergeData(goGuest(t)))
	check(t, err)
	for _, s := range secs {
		if s.id != secData {
			continue
		}
		segs, ok := activeSegments(s.body)
		if !ok || len(segs) > 100 {
			t.Errorf("got %d segments, want at most 100", len(segs))
		}
		return
	}
	t.Error("no data section is left")
}
