package conform

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/conformance"
)

// ownerVerb is the hidden verb that the suite starts as an owner in a process of
// its own. The store comes through the environment:
// arguments show in the list of processes, and its URL may hold a password.
const ownerVerb = "conformance-owner"

// NewOwnerCommand makes the hidden verb.
func NewOwnerCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     ownerVerb,
		Short:   "Serve the conformance suite as an owner",
		Example: "  hostctl conformance fs:/srv --profile loop",
		Hidden:  true,
		Args:    verb.Exactly(),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, _, err := env.OpenStore(cmd.Context(), env.StoreURL(""))
		if err != nil {
			return err
		}
		return errors.Join(conformance.ServeStartedOwner(cmd.Context(), s), s.Close())
	}
	return cmd
}

// spawn starts an owner of the store at url. It is in a process group of its own:
// a Ctrl-C is the suite's to handle.
func spawn(url string) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, ownerVerb)
	cmd.Env = append(os.Environ(), verb.StoreVariable+"="+url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return conformance.StartOwner(cmd)
}
