package wasm

import (
	"testing"
	"time"

	"github.com/loophost/loophost/pluginapi"
)

func TestManifestsLowerLimitsOnly(t *testing.T) {
	host := Limits{}.withDefaults()
	for name, c := range map[string]struct {
		asks *pluginapi.Limits
		want func(*Limits)
	}{
		"nothing asked": {nil, func(*Limits) {}},
		"all zero":      {&pluginapi.Limits{}, func(*Limits) {}},
		"lower": {&pluginapi.Limits{MemoryPages: 64, OutputBytes: 1000, TimeoutMS: 20}, func(l *Limits) {
			l.MemoryPages, l.OutputBytes = 64, 1000
			l.HookTimeout, l.ToolTimeout, l.ProviderSilence = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
		}},
		"between the hook's and the tool's": {&pluginapi.Limits{TimeoutMS: 60_000}, func(l *Limits) {
			l.ToolTimeout, l.ProviderSilence = time.Minute, time.Minute
		}},
		"higher":       {&pluginapi.Limits{MemoryPages: 1 << 20, OutputBytes: 1 << 40, TimeoutMS: 1 << 40}, func(*Limits) {}},
		"out of range": {&pluginapi.Limits{MemoryPages: -1, OutputBytes: -1, TimeoutMS: 1<<63 - 1}, func(*Limits) {}},
	} {
		t.Run(name, func(t *testing.T) {
			want := host
			c.want(&want)
			want.RecycleMemory = int64(want.MemoryPages) * pageSize / 4 * 3
			if got := host.lowered(c.asks); got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestLimitsOfAManifestHold(t *testing.T) {
	p := load(t, Config{}, Grants{}, func(m *pluginapi.Manifest) {
		m.Limits = &pluginapi.Limits{OutputBytes: 100, TimeoutMS: 300}
	})
	if _, err := hook(t.Context(), p, "flood output", ""); err == nil {
		t.Error("more output than the manifest allows was taken")
	} else {
		wantFault(t, err, "output")
	}
	_, err := hook(t.Context(), p, "loop", "")
	wantFault(t, err, "timeout")
}
