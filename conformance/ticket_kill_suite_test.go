package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/backends/fs"
	"github.com/loophost/loophost/host/store"
)

// Variables that make a process of this test binary an owner, of a folder's store with a
// defect.
const (
	ownerFolder = "CONFORMANCE_TEST_OWNER_FOLDER"
	ownerDefect = "CONFORMANCE_TEST_OWNER_DEFECT"
)

// inFolder is a store in a folder, broken by a name of brokenForKills, with owners in
// processes of their own.
type inFolder struct{ dir, defect string }

func (h inFolder) Open(context.Context) (store.Store, error) {
	s, err := fs.Open(fs.Config{Dir: h.dir})
	if with := brokenForKills()[h.defect]; err == nil && with != nil {
		return with(s), nil
	}
	return s, err
}

func (h inFolder) Environment(context.Context) (Environment, error) {
	return Environment{Name: "a temporary folder"}, nil
}

func (h inFolder) SpawnOwner(context.Context) (OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), ownerFolder+"="+h.dir, ownerDefect+"="+h.defect)
	return StartOwner(cmd)
}

// servesAsOwner serves as an owner where this is such a process.
func servesAsOwner() bool {
	h := inFolder{os.Getenv(ownerFolder), os.Getenv(ownerDefect)}
	if h.dir == "" {
		return false
	}
	s, err := h.Open(context.Background())
	if err == nil {
		err = errors.Join(ServeStartedOwner(context.Background(), s), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// brokenForKills are the stores that the kill matrix of tickets is tried on.
func brokenForKills() map[string]func(store.Store) store.Store {
	out := map[string]func(store.Store) store.Store{
		"acknowledges before it writes": func(s store.Store) store.Store { return &lazy{Store: s} },
	}
	for name, do := range map[string]func(store.Store, context.Context, store.Key, store.Fence, store.Commit) (store.Ack, error){
		"keeps the old head": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			rec, err := s.Load(ctx, key)
			if err != nil {
				return store.Ack{}, err
			}
			c.Head = rec.Head
			return s.Commit(ctx, key, f, c)
		},
		"loses a stop receipt": func(s store.Store, ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
			if strings.Contains(string(c.Head), `"ticket.owned_stop.v1":`) && key.Kind == store.KindSession {
				rec, err := s.Load(ctx, key)
				if err != nil {
					return store.Ack{}, err
				}
				c.Head = rec.Head
			}
			return s.Commit(ctx, key, f, c)
		},
	} {
		out[name] = func(s store.Store) store.Store { return commits{s, do} }
	}
	return out
}

// apart are the cases whose owner must be a process of its own, also here: what it
// leaves behind is.
func apart(c Case) bool { return c.ID == "M-4/killed/while-the-command-runs" }

func killFailures(t *testing.T, h Harness, cases []Case) map[string]string {
	t.Helper()
	o := Options{Profiles: []Profile{ProfileTickets}, Timeout: 20 * time.Second, Namespace: "own"}.normal()
	report, err := check(context.Background(), h, o, cases)
	if err != nil {
		t.Error(err)
	}
	failed := map[string]string{}
	for _, r := range report.Profiles[0].Results {
		switch {
		case r.Outcome == Failed:
			failed[r.ID] = r.Reason
		case r.Outcome == Skipped && provesGroups():
			t.Errorf("%s was skipped: %s", r.ID, r.Reason)
		}
	}
	return failed
}

// killed are the results of the kill matrix on a store: beside the suite where that will
// do, and in a folder with real processes where it will not.
func killed(t *testing.T, defect string) map[string]string {
	t.Helper()
	var h Harness = newMini("")
	if with := brokenForKills()[defect]; with != nil {
		h = tampered{newMini(""), with}
	}
	failed := killFailures(t, spawning{h}, slices.DeleteFunc(killCases(), apart))
	maps.Copy(failed, killFailures(t, inFolder{t.TempDir(), defect}, slices.DeleteFunc(killCases(), func(c Case) bool { return !apart(c) })))
	return failed
}

func TestUnbrokenStorePassesTheTicketKillMatrix(t *testing.T) {
	for id, why := range killed(t, "") {
		t.Errorf("%s fails against a store without a defect: %s", id, why)
	}
}

// Each broken store is caught by the kill matrix of tickets, and each of its cases
// catches one.
func TestTheTicketKillMatrixCatchesBrokenStores(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process children need Linux")
	}
	catches, caught := map[string]bool{}, map[string][]string{}
	for name := range brokenForKills() {
		failed := killed(t, name)
		if len(failed) == 0 {
			t.Errorf("a store that is broken (%s): want a case that fails, got none", name)
		}
		for id := range failed {
			catches[id] = true
			caught[name] = append(caught[name], id)
		}
	}
	for _, c := range killCases() {
		if !catches[c.ID] {
			t.Errorf("%s: want a broken store that it catches, got none", c.ID)
		}
	}
	documented(t, "tickets, killed", caught)
}

// The rows of the matrix and the sides of each are all there.
func TestTheTicketKillMatrixIsWhole(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range Cases(ProfileTickets) {
		ids[c.ID] = true
	}
	for _, id := range []string{"local/before", "local/after", "process/before", "process/after", "in-the-agent", "while-the-command-runs"} {
		if !ids["M-4/killed/"+id] {
			t.Errorf("there is no case M-4/killed/%s", id)
		}
	}
}

// An owner that ends before its cells fails the case.
func TestAMissingCellFailsTheTicketKillMatrix(t *testing.T) {
	for id, h := range map[string]Harness{"an owner that never halts": endless{spawning{newMini("")}}, "an owner that can't be started": unspawnable{newMini("")}} {
		failed := killFailures(t, h, killCases()[:1])
		if why := failed[killCases()[0].ID]; !strings.Contains(why, "there is no cell") && !strings.Contains(why, "start an owner") {
			t.Errorf("%s: got %q, want a failure that names it", id, why)
		}
	}
}
