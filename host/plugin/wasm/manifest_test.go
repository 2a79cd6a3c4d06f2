package wasm

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/pluginapi"
)

func withManifest(t testing.TB, wasm []byte, m pluginapi.Manifest) []byte {
	t.Helper()
	out, err := AppendManifest(wasm, encode(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadManifest(t *testing.T) {
	bare := tiny{call: ic(0)}.wasm()
	m := manifest()
	m.Config = pluginapi.Raw(`{"type":"object"}`)
	inside := withManifest(t, bare, m)
	other := m
	other.Version = "2.0"
	spaced := bytes.ReplaceAll(encode(t, m), []byte(`,"`), []byte(",\n  \""))
	twice := append(bytes.Clone(inside), inside[len(bare):]...)
	bad := sec(secCustom, join(str(pluginapi.ManifestSection), []byte(`{"schema":1}`)))
	for name, c := range map[string]struct {
		wasm, sidecar []byte
		is            error
		says          string
	}{
		"inside":                {wasm: inside},
		"beside":                {wasm: bare, sidecar: encode(t, m)},
		"both, saying the same": {wasm: inside, sidecar: encode(t, m)},
		"both, saying the same with other spacing": {wasm: inside, sidecar: spaced},
		"both, saying different things":            {wasm: inside, sidecar: encode(t, other), is: ErrManifestDiffers},
		"neither":                                  {wasm: bare, is: ErrNoManifest},
		"two inside":                               {wasm: twice, says: "twice"},
		"one that is not valid":                    {wasm: join(bare, bad), says: "name"},
		"one beside with an unknown field":         {wasm: bare, sidecar: []byte(`{"schema":1,"color":"red"}`), says: "color"},
		"one beside that is empty":                 {wasm: bare, sidecar: []byte{}, says: "plugin.json"},
		"one beside that is too long":              {wasm: bare, sidecar: bytes.Repeat([]byte(" "), pluginapi.MaxManifestBytes+1), says: "at most"},
		"no module":                                {wasm: []byte("#!/bin/sh\n"), says: "WebAssembly"},
		"a component":                              {wasm: []byte("\x00asm\x0d\x00\x01\x00"), says: "component"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadManifest(c.wasm, c.sidecar)
			if c.is != nil || c.says != "" {
				if err == nil || (c.is != nil && !errors.Is(err, c.is)) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v, want %v, with %q", err, c.is, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(encode(t, m), encode(t, got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestAppendManifest(t *testing.T) {
	m := manifest()
	first := withManifest(t, goGuest(t), m)
	m.Version = "2.0"
	second := withManifest(t, first, m)
	if got, err := ReadManifest(second, nil); err != nil || got.Version != "2.0" {
		t.Errorf("got %+v, %v; want the second one", got, err)
	}
	if len(second) != len(first) {
		t.Errorf("got %d bytes, then %d: the first section is still there", len(first), len(second))
	}
	if Digest(first) == Digest(second) {
		t.Error("the manifest is not part of the digest")
	}
	p := loadModule(t, Config{}, Module{Wasm: second})
	if got := ask(t, p, "calls", ""); got != "1" || p.Info().Version != "2.0" {
		t.Errorf("got %q from version %s", got, p.Info().Version)
	}
	if _, err := AppendManifest(first, []byte(`{"schema":1}`)); err == nil {
		t.Error("a manifest that isn't valid was put into a module")
	}
	if _, err := AppendManifest([]byte("no module"), encode(t, m)); err == nil {
		t.Error("a manifest was put into what isn't a module")
	}
}

func TestInspect(t *testing.T) {
	wasm := withManifest(t, goGuest(t), manifest())
	in, err := Inspect(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if in.Digest != Digest(wasm) || in.Bytes != len(wasm) || !in.Metered || in.MemoryMin == 0 || in.Manifest == nil || in.Manifest.Name != "guest" {
		t.Errorf("got %+v", in)
	}
	if len(in.Problems) != 0 {
		t.Errorf("got the problems %q", in.Problems)
	}
	names := map[string]string{}
	for _, s := range append(in.Imports, in.Exports...) {
		names[s.Module+"."+s.Name] = s.Kind + s.Type
	}
	for name, want := range map[string]string{
		"lh1.input_read": "func(i32,i32,i32)->(i32)", wasiModule + ".fd_write": "func(i32,i32,i32,i32)->(i32)",
		".lh1_call": "func(i32,i32)->(i32)", ".memory": "memory", "._initialize": "func()->()",
	} {
		if names[name] != want {
			t.Errorf("%s: got %q, want %q", name, names[name], want)
		}
	}
}

func TestInspectTellsWhatAHostWouldRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		m    tiny
		says string
	}{
		"another ABI":        {tiny{call: ic(0), name: "lh2_call"}, "lh2_call"},
		"an unknown import":  {tiny{call: ic(0), imports: []tinyImport{{"env", "system", 1, false}}}, "env.system"},
		"the meter's import": {tiny{call: ic(0), imports: []tinyImport{{"lh1_fuel", "refill", 1, false}}}, "reserved"},
	} {
		in, err := Inspect(c.m.wasm())
		if err != nil || !strings.Contains(strings.Join(in.Problems, "\n"), c.says) {
			t.Errorf("%s: got %+v, %v; want %q among the problems", name, in, err, c.says)
		}
	}
	if in, err := Inspect(tiny{call: join(simd, ic(0))}.wasm()); err != nil || !in.Metered || len(in.Problems) != 0 {
		t.Errorf("a module with SIMD: got %+v, %v; want no problem, and metered", in, err)
	}
	if _, err := Inspect([]byte("\x00asm\x01\x00\x00\x00\x01")); err == nil {
		t.Error("a module cut short was taken")
	}
}

func FuzzModule(f *testing.F) {
	full := tiny{call: ic(0), init: ic(0), start: []byte{0x01}, most: 9}.wasm()
	f.Add(full)
	f.Add(withManifest(f, full, manifest()))
	f.Add(full[:20])
	doc := encode(f, manifest())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		_, _ = ReadManifest(wasm, nil)
		in, err := Inspect(wasm)
		if err == nil && in.Bytes != len(wasm) {
			t.Errorf("got %d bytes, want %d", in.Bytes, len(wasm))
		}
		out, err := AppendManifest(wasm, doc)
		if err != nil {
			return
		}
		if m, err := ReadManifest(out, nil); err != nil || m.Name != "guest" {
			t.Errorf("the manifest that was put in reads as %+v, %v", m, err)
		}
	})
}

func FuzzGuestAnswers(f *testing.F) {
	for _, s := range []string{`{"type":"text","text":"x"}`, `{"type":"result","finish":"stop"}`, `{"kind":"auth","message":""}`, "\n\n", `{"type":"tool_call","tool_call":{"id":"1","name":"n","arguments":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := answer{emit: func(c pluginapi.Chunk) error {
			if checkChunk(&c) != nil {
				t.Errorf("an invalid chunk was passed on: %+v", c)
			}
			return nil
		}}
		if a.lines(b) == nil && a.whole() == nil && a.result().Finish == "" {
			t.Error("a whole answer without a finish reason")
		}
		if err := failure(b); err == nil {
			t.Error("an error document that is no error")
		}
		var d pluginapi.Decision
		_ = decode(b, &d, "decision")
	})
}
