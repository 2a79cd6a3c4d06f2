package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/loophost/loophost/backends/fs/internal/disk"
	"github.com/loophost/loophost/backends/fs/internal/format"
	"github.com/loophost/loophost/host/store"
)

// idleRecords is how many records without an owner here stay open.
const idleRecords = 64

// Config says where and how a store is opened.
type Config struct {
	// Dir is the store's folder; it is made (0700) when it is not there. It may be
	// reached through a symbolic link; nothing inside is followed out of it.
	Dir string
	// Insist opens the store also on a filesystem whose locks or flushes can't be
	// trusted. It then promises the level process at most, and that unproven.
	Insist bool
	// Logger gets what a person should know: torn writes, locks gone past, failed
	// clean-ups. nil: silent.
	Logger *slog.Logger
	// Clock gives the time for births and for people; it decides nothing else
	// (S-8). nil: time.Now.
	Clock func() time.Time
}

// Store is an open store. It implements store.Store, store.SignalWatcher,
// store.Checker, store.Historian and store.Queue. Make one with Open.
type Store struct {
	root *disk.Dir
	desc store.Description
	log  *slog.Logger
	now  func() time.Time
	host string
	wrap func(disk.File) disk.File // tests put failing files in

	ahead int64         // space written ahead of the frames of a record with an owner
	blank func() []byte // a piece of filler, made once; nobody changes it

	mu      sync.Mutex
	records map[store.Key]*record
	queues  map[string]*queue
	closed  bool
	done    chan struct{}
	busy    sync.WaitGroup // calls and watches
}

var (
	_ store.Store         = (*Store)(nil)
	_ store.SignalWatcher = (*Store)(nil)
	_ store.Checker       = (*Store)(nil)
)

// Open opens the store in c.Dir. Errors: ErrUnsupported (the system has no
// usable locks, or the filesystem can't be trusted and c.Insist is not set),
// ErrUnavailable (the folder can't be used; the cause names it).
func Open(c Config) (*Store, error) { return open(c, nil) }

// open is Open; rec, if not nil, hears of every change on the disk.
func open(c Config, rec disk.Recorder) (*Store, error) {
	const op = "open"
	if !disk.Supported {
		return nil, &store.Error{Op: op, Kind: store.ErrUnsupported, Detail: "the filesystem store needs the file locks of a Unix system"}
	}
	if c.Dir == "" {
		return nil, &store.Error{Op: op, Kind: store.ErrUnavailable, Detail: "no folder was named"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if err := disk.MakeAll(c.Dir, rec); err != nil {
		detail := "the store's folder can't be made or is no folder"
		if info, lerr := os.Lstat(c.Dir); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			detail = "the store's folder is a symbolic link that leads to no folder"
		}
		return nil, &store.Error{Op: op, Kind: store.ErrUnavailable, Detail: detail, Err: err}
	}
	root, err := disk.OpenDir(c.Dir, rec)
	if err != nil {
		return nil, &store.Error{Op: op, Kind: store.ErrUnavailable, Detail: "the store's folder can't be opened", Err: err}
	}
	m, err := medium(root)
	if err != nil {
		return nil, errors.Join(&store.Error{Op: op, Kind: store.ErrUnavailable, Detail: fmt.Sprintf("the store's folder %s can't be used", c.Dir), Err: err}, root.Close())
	}
	level, how, err := promise(m, c.Insist)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := try(root); err != nil {
		return nil, errors.Join(&store.Error{Op: op, Kind: store.ErrUnavailable, Detail: fmt.Sprintf("the store's folder %s can't be used", c.Dir), Err: err}, root.Close())
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		dir = c.Dir
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return &Store{
		root: root, log: c.Logger, now: c.Clock, host: host,
		wrap: func(f disk.File) disk.File { return f }, ahead: step,
		blank: sync.OnceValue(func() []byte { return filler(piece) }),
		desc: store.Description{
			Name: "fs", Version: "1", Location: dir, Durability: store.Durability{Level: level}, Probe: how,
			Capabilities: []string{"watch", "check", "processes", "liveness", "queue"},
		},
		records: map[store.Key]*record{}, queues: map[string]*queue{}, done: make(chan struct{}),
	}, nil
}

// promise is what a store on m promises (S-5).
func promise(m disk.Medium, insist bool) (store.Level, string, error) {
	tried := "locks and flushes were tried in the folder and work"
	switch {
	case m.Level == store.LevelPower:
		return m.Level, fmt.Sprintf("the folder is on %s, which keeps flushed data through power loss; %s", m.Type, tried), nil
	case m.Level != store.LevelNone:
		return m.Level, fmt.Sprintf("the folder is on %s, which lives in the machine's memory; %s", m.Type, tried), nil
	case insist:
		return store.LevelProcess, fmt.Sprintf("the folder is on %s, whose locks or flushes can't be trusted; it was opened because the operator insisted", m.Type), nil
	}
	why := "whose locks or flushes can't be trusted"
	if !m.Known {
		why = "which is not known to keep locks and flushes"
	}
	return store.LevelNone, "", &store.Error{
		Op: "open", Kind: store.ErrUnsupported,
		Detail: fmt.Sprintf("the folder is on %s, %s; choose a local disk, or insist", m.Type, why),
	}
}

// medium says what the folder lies on.
func medium(root *disk.Dir) (m disk.Medium, err error) {
	d, err := root.Open(".")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return disk.MediumOf(d)
}

// try does in the folder what the store needs there. A full disk passes: what is
// stored can still be read.
func try(root *disk.Dir) error { return passFull(tryLocks(root)) }

func passFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return err
}

func tryLocks(root *disk.Dir) (err error) {
	name := fmt.Sprintf("%sprobe-%d-%d", disk.TempPrefix, os.Getpid(), time.Now().UnixNano())
	a, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(), root.Remove(name)) }()
	b, err := root.OpenFile(name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	first, err := disk.TryLock(a.File)
	if err != nil {
		return err
	}
	second, err := disk.TryLock(b.File)
	if err != nil {
		return err
	}
	if !first || second {
		return fmt.Errorf("%s: file locks do not exclude each other here", b.Name())
	}
	if _, err := a.Write([]byte{format.Filler}); err != nil {
		return err
	}
	return a.Flush()
}

// Describe says what the store promises.
func (s *Store) Describe(ctx context.Context) (store.Description, error) {
	leave, err := s.start(ctx, "describe", store.Key{})
	if err != nil {
		return store.Description{}, err
	}
	defer leave()
	return s.desc, nil
}

// start lets one call in, unless its context or the store has ended (S-9).
func (s *Store) start(ctx context.Context, op string, key store.Key) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Detail: "the store is closed"}
	}
	s.busy.Add(1)
	return s.busy.Done, nil
}

// Close waits for the calls under way and frees everything. Records that are
// owned here are left as after a crash: their owner is known to be gone.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	s.busy.Wait()
	var errs []error
	for _, r := range s.records {
		errs = append(errs, r.close())
	}
	for _, q := range s.queues {
		errs = append(errs, q.close())
	}
	errs = append(errs, s.root.Close())
	return errors.Join(errs...)
}

// use gives the record of key as this handle keeps it, and the turn on it.
func (s *Store) use(ctx context.Context, key store.Key) (*record, error) {
	s.mu.Lock()
	r := s.records[key]
	if r == nil {
		r = newRecord(s, key)
		s.records[key] = r
	}
	r.uses++
	s.mu.Unlock()
	if err := r.enter(ctx); err != nil {
		s.mu.Lock()
		r.uses--
		s.mu.Unlock()
		return nil, err
	}
	return r, nil
}

// unuse gives the turn back. A record that is not there is forgotten; where too
// many stay open without an owner here, one of them is closed.
func (s *Store) unuse(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.uses--
	if r.uses == 0 && r.owner == nil && r.dir == nil {
		s.drop(r)
	} else if r.owner == nil && len(s.records) > idleRecords {
		for _, idle := range s.records {
			if idle != r && idle.uses == 0 && idle.owner == nil {
				s.drop(idle)
				break
			}
		}
	}
	r.leave()
}

// drop closes a record that nobody uses; the caller holds mu.
func (s *Store) drop(r *record) {
	delete(s.records, r.key)
	if err := r.close(); err != nil {
		s.log.Warn("a record was not closed", "kind", r.key.Kind, "id", r.key.ID, "err", err)
	}
}

// folderPath is where a record lies below the root. Two letters of the hash
// make a folder between, so that no folder grows too large.
func folderPath(key store.Key) string {
	name := format.Folder(key)
	return string(key.Kind) + "/" + name[:2] + "/" + name
}

// fail turns what went wrong below into the port's error.
func fail(op string, key store.Key, err error) error {
	var e *store.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAbsent):
		return &store.Error{Op: op, Key: key, Kind: store.ErrNotFound}
	case errors.Is(err, format.ErrTooLong):
		return &store.Error{Op: op, Key: key, Kind: store.ErrTooLarge, Err: err}
	case errors.As(err, &e):
		e.Op, e.Key = op, key
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrPermission):
		return &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Detail: "the store's files can't be used; nothing was changed", Err: err}
	}
	return &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Err: err}
}
