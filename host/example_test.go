package host_test

import (
	"context"
	"fmt"

	"github.com/loophost/loophost/host"
	"github.com/loophost/loophost/host/plugin"
	"github.com/loophost/loophost/host/store/memstore"
	"github.com/loophost/loophost/pluginapi"
)

// A program runs a loop of two iterations with a provider of its own. The memory
// store keeps nothing beyond the program's life; a real one takes its place
// without another change.
func ExampleNew() {
	ctx := context.Background()
	st := memstore.New().Open()
	defer st.Close()

	h, err := host.New(host.Config{Store: st, Owner: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := h.Open(ctx, host.OpenRequest{ID: "greetings"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)

	greeter := plugin.FuncProvider{
		Name: "greeter",
		Fn: func(_ context.Context, _ plugin.Session, req *plugin.Request, _ func(pluginapi.Chunk) error) (*pluginapi.ProviderResult, error) {
			text := fmt.Sprintf("Hello for the time number %d.", req.Call.Iteration)
			return &pluginapi.ProviderResult{Message: pluginapi.Message{Text: text}, Finish: pluginapi.FinishStop}, nil
		},
	}
	result, err := session.Run(ctx, host.RunSpec{
		Objective: "Say hello.", Iterations: 2, Rounds: 5, Provider: greeter,
		Observer: func(e host.Event) {
			if e.Type == host.EventMessage || e.Type.Terminal() {
				fmt.Println(e.Type)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Outcome(), result.RoundsStarted, result.FinalText)
	// Output:
	// message
	// message
	// message
	// message
	// complete
	// completed 2 Hello for the time number 2.
}
