package plugin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

func TestTheInputIsWhatTheJSONEncoderWrites(t *testing.T) {
	for _, in := range []pluginapi.HookInput{
		{Point: "<point> & \u2028", Document: pluginapi.Raw(`{}`)},
		{
			Point:    pluginapi.AfterRound,
			Session:  pluginapi.SessionInfo{ID: "a \"name\" \xff é", ExecutionID: "e\n", Generation: "g\\", Revision: 1<<64 - 1},
			Loop:     pluginapi.LoopInfo{Status: "running", MaxIterations: 1, MaxTotalRounds: 2, IterationsStarted: 3, IterationsCompleted: 4, RoundsStarted: 1<<32 - 1},
			Document: pluginapi.Raw(`[1, 2]`),
		},
	} {
		head, err := json.Marshal(struct {
			Point   pluginapi.HookPoint   `json:"point"`
			Session pluginapi.SessionInfo `json:"session"`
			Loop    pluginapi.LoopInfo    `json:"loop"`
		}{in.Point, in.Session, in.Loop})
		if err != nil {
			t.Fatal(err)
		}
		want := string(head[:len(head)-1]) + `,"document":` + string(in.Document) + "}"
		if got, err := plugin.EncodeInput(&in); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestAnInputWithoutADocumentIsNotEncoded(t *testing.T) {
	if _, err := plugin.EncodeInput(&pluginapi.HookInput{Point: pluginapi.AfterRound}); !errors.Is(err, plugin.ErrDocument) {
		t.Errorf("got %v, want ErrDocument", err)
	}
}
