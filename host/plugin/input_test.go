package plugin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

func TestTheEncodedInputIsWhatTheRecordHashes(t *testing.T) {
	for point, doc := range documents(t) {
		in := pluginapi.HookInput{Point: point, Session: env.Session, Loop: env.Loop, Document: doc}
		data, err := plugin.EncodeInput(&in)
		if err != nil {
			t.Fatal(err)
		}
		var got pluginapi.HookInput
		if err := strictjson.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", point, diff)
		}
		if point.Observer() {
			continue
		}
		v, err := chain(t, hook("h", pluginapi.HookDecl{Point: point}, answers(pluginapi.Decision{Action: pluginapi.Continue}))).Run(t.Context(), env, point, doc)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got, want := v.Records[0].InputSHA256, hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: got hash %s, want %s", point, got, want)
		}
	}
}

func TestAnInputWithoutADocumentIsNotEncoded(t *testing.T) {
	if _, err := plugin.EncodeInput(&pluginapi.HookInput{Point: pluginapi.AfterRound}); !errors.Is(err, plugin.ErrDocument) {
		t.Errorf("got %v, want ErrDocument", err)
	}
}
