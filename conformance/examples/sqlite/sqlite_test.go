package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loophost/loophost/conformance"
	"github.com/loophost/loophost/conformance/examples/sqlite"
	"github.com/loophost/loophost/host/store"
)

// harness opens handles onto one file, moves their clock, and damages what is stored.
type harness struct {
	file  string
	ahead *atomic.Int64 // how far the leases' clock is ahead of the machine's, in ns
}

func newHarness(tb testing.TB) harness {
	return harness{filepath.Join(tb.TempDir(), "the store?.db"), new(atomic.Int64)}
}

func (h harness) Open(ctx context.Context) (store.Store, error) {
	return sqlite.Open(ctx, h.file, func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) })
}

func (h harness) Environment(context.Context) (conformance.Environment, error) {
	return conformance.Environment{Name: "sqlite in a temporary folder"}, nil
}

func (h harness) AdvanceLeases(d time.Duration) { h.ahead.Add(int64(d)) }

// Damage changes one byte of the first entry of the commit that made revision.
func (h harness) Damage(ctx context.Context, key store.Key, revision uint64) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Dir(h.file)+"/the%20store%3F.db")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "UPDATE entry SET data = x'21' || substr(data, 2) WHERE key = ? AND revision = ?", []byte(key.String()), int64(revision))
	return err
}

// ownedFile is the environment variable that makes a test process an owner.
const ownedFile = "SQLITE_TEST_OWNED_FILE"

// SpawnOwner runs this test binary again, as an owner on the same file.
func (h harness) SpawnOwner(context.Context) (conformance.OwnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), ownedFile+"="+h.file)
	return conformance.StartOwner(cmd)
}

func TestMain(m *testing.M) {
	file := os.Getenv(ownedFile)
	if file == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	s, err := sqlite.Open(ctx, file, nil)
	if err == nil {
		err = errors.Join(conformance.ServeStartedOwner(ctx, s), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestConformance(t *testing.T) { conformance.Run(t, newHarness(t)) }

func BenchmarkStore(b *testing.B) { conformance.Bench(b, newHarness(b)) }
