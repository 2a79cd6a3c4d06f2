package pluginapi_test

import (
	"testing"

	"github.com/loophost/loophost/pluginapi"
)

func TestWhichFailuresMayBeTriedAgain(t *testing.T) {
	for kind, want := range map[pluginapi.FailureKind]bool{
		pluginapi.FailAuth: false, pluginapi.FailInvalidRequest: false, pluginapi.FailContextOverflow: false,
		pluginapi.FailExhausted: false, pluginapi.FailInternal: false, "unheard of": false,
		pluginapi.FailRateLimited: true, pluginapi.FailOverloaded: true, pluginapi.FailNetwork: true,
		pluginapi.FailProtocol: true, pluginapi.FailEmpty: true, pluginapi.FailTruncated: true,
	} {
		if got := kind.Retryable(); got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}

func TestAFailureSaysItsKindAndMessage(t *testing.T) {
	err := error(&pluginapi.Failure{Kind: pluginapi.FailAuth, Message: "no key"})
	if got, want := err.Error(), "auth: no key"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhichActionsEndTheChain(t *testing.T) {
	for action, want := range map[pluginapi.Action]bool{
		pluginapi.Continue: false, pluginapi.Allow: false, pluginapi.Mutate: false, pluginapi.Inject: false, pluginapi.Stop: false,
		pluginapi.Deny: true, pluginapi.Ask: true, pluginapi.Abort: true,
	} {
		if got := action.EndsChain(); got != want {
			t.Errorf("%s: got %v, want %v", action, got, want)
		}
	}
}

func TestOperationsHaveWords(t *testing.T) {
	for op, want := range map[pluginapi.Op]string{
		pluginapi.OpHook: "hook", pluginapi.OpProvider: "provider", pluginapi.OpTool: "tool", 99: "unknown",
	} {
		if got := op.String(); got != want {
			t.Errorf("%d: got %q, want %q", op, got, want)
		}
	}
}
