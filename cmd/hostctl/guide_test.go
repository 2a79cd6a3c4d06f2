//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/report"
	"github.com/loophost/loophost/cmd/hostctl/internal/settings"
)

// TestTheGuideIsComplete keeps docs/guide-operators.md in step with the flags of
// run, the exit codes and the JSON object.
func TestTheGuideIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/guide-operators.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	var flags settings.Flags
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.Register(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(guide, "`--"+f.Name) {
			t.Errorf("the guide does not name --%s", f.Name)
		}
	})
	for _, code := range []exit.Code{
		exit.OK, exit.Error, exit.Usage, exit.Stopped, exit.BudgetExhausted, exit.Cancelled, exit.Failed, exit.Fenced, exit.Busy,
		exit.RecoveryUnsupported, exit.StoreError, exit.GoalUnmet, exit.Submitted, exit.NeedsPerson, exit.UnderWay, exit.Interrupted,
	} {
		if !strings.Contains(guide, "\n| "+strconv.Itoa(int(code))+" |") {
			t.Errorf("the guide's table lacks exit code %d", code)
		}
	}
	object, err := json.Marshal(report.Result{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !strings.Contains(guide, "`"+name+"`") {
			t.Errorf("the guide does not name the field %s", name)
		}
	}
}
