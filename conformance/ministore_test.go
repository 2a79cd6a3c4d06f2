package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// mini is a small store whose promises can be broken one by one: a defect is a
// word in broken, and each place that keeps a promise asks for it. Without a
// defect it keeps them all; the suite's own tests rest on that.
//
// Its clock stands still, so that only the tombstone makes births grow.
type mini struct {
	broken defect

	mu      sync.Mutex
	now     time.Time
	records map[string]*miniRecord
	graves  map[string]store.Birth
	ids     map[string]miniMade // for "ids are global"
	posted  chan struct{}

	copies     int  // replicas that a commit reaches if it asks for them: see miniPair
	failedOver bool // another node serves
}

type miniRecord struct {
	key        store.Key
	mark       store.Mark
	marks      []store.Mark
	head       []byte
	log        []store.Entry
	lastID     string
	made       []miniMade
	nevers     []string
	fence      store.Fence
	by         *miniHandle
	generation string
	released   bool
	expires    time.Time
	signals    []store.Signal
	sum        [sha256.Size]byte
}

type miniMade struct {
	c   store.Commit
	ack store.Ack
}

type miniHandle struct {
	m       *mini
	closed  bool
	signals []store.Signal // for "signals live in the handle"
	undo    func()         // for "acknowledges before it flushes"
}

var miniLimits = store.Limits{HeadBytes: 100_000, EntryBytes: 5 << 19, CommitBytes: 5 << 20}

func newMini(d defect) *mini {
	return &mini{broken: d, now: time.Unix(1_900_000_000, 0), records: map[string]*miniRecord{}, graves: map[string]store.Birth{}, ids: map[string]miniMade{}, posted: make(chan struct{})}
}

// The harness.

func (m *mini) Open(context.Context) (store.Store, error) { return &miniHandle{m: m}, nil }

func (m *mini) Environment(context.Context) (Environment, error) {
	return Environment{Name: "the suite's own test", Values: map[string]string{"defect": string(m.broken)}}, nil
}

func (m *mini) AdvanceLeases(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

func (m *mini) Forward(_ context.Context, key store.Key, revision uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[m.name(key)].mark.Revision = revision
	return nil
}

func (m *mini) Damage(_ context.Context, key store.Key, _ uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[m.name(key)].sum[0] ^= 1
	return nil
}

func (m *mini) Crash(context.Context) error {
	if m.broken == "loses the last commit in a crash" {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, r := range m.records {
			if n := len(r.marks); n > 1 {
				r.marks, r.mark = r.marks[:n-1], r.marks[n-2]
			}
		}
	}
	return nil
}

// is reports whether the store has defect d.
func (h *miniHandle) is(d defect) bool { return h.m.broken == d }

func (h *miniHandle) usable(ctx context.Context, op string, key store.Key) error {
	if err := ctx.Err(); err != nil {
		if h.is("ignores the context") {
			return nil
		}
		if h.is("calls a cancelled call an unknown outcome") {
			return &store.Error{Op: op, Key: key, Kind: store.ErrUnknownOutcome, Err: err}
		}
		return err
	}
	if h.closed && !h.is("works after close") {
		return &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable}
	}
	return nil
}

func (h *miniHandle) valid(key store.Key) error {
	if h.is("accepts malformed keys") {
		return nil
	}
	return key.Validate()
}

func (h *miniHandle) record(op string, key store.Key) (*miniRecord, error) {
	r := h.m.records[h.m.name(key)]
	if r == nil {
		kind := store.ErrNotFound
		if h.is("says conflict for not found") {
			kind = store.ErrConflict
		}
		e := &store.Error{Op: op, Key: key, Kind: kind}
		if h.is("errors name no key") {
			e.Key = store.Key{}
		}
		return nil, e
	}
	return r, nil
}

// holds is the fence check.
func (h *miniHandle) holds(op string, r *miniRecord, f store.Fence) error {
	want := r.current()
	switch {
	case h.is("ignores the birth of a fence"):
		f.Birth = want.Birth
	case h.is("ignores the generation of a fence"):
		f.Generation = want.Generation
	case h.is("ignores the owner of a fence"):
		f.Owner = want.Owner
	case h.is("ignores the run of a fence"):
		f.Run = want.Run
	case h.is("takes a later birth for equal"):
		f.Birth = min(f.Birth, want.Birth)
		if f.Birth < want.Birth {
			f.Birth = 0
		}
	case h.is("an empty fence opens everything") && f.IsZero(),
		h.is("no fence check"),
		h.is("fence on commits but not on deletes") && op != "commit",
		h.is("renews under any fence") && op == "renew",
		h.is("releases under any fence") && op == "release",
		h.is("resolves under any fence") && op == "resolve":
		return nil
	case h.is("an empty fence opens an unowned record") && f.IsZero() && want.IsZero():
		return nil
	case h.is("an expired lease fences") && !r.key.Kind.Shared() && h.m.now.After(r.expires):
		f = store.Fence{}
	case h.is("a fence is bound to its handle") && r.by != h && !r.key.Kind.Shared():
		f = store.Fence{}
	case h.is("shared records need no birth") && r.key.Kind.Shared():
		return nil
	}
	if f == want && !f.IsZero() {
		return nil
	}
	if op == "commit" && r.key.Kind.Shared() && f.IsZero() && !h.is("shared records take no empty fence") {
		return nil
	}
	e := &store.Error{Op: op, Key: r.key, Kind: store.ErrFenced, Fence: want}
	if h.is("fenced errors name no fence") {
		e.Fence = store.Fence{}
	}
	return e
}

func (r *miniRecord) current() store.Fence {
	if r.key.Kind.Shared() {
		return store.Fence{Birth: r.mark.Birth}
	}
	return r.fence
}

func (h *miniHandle) Describe(ctx context.Context) (store.Description, error) {
	if err := h.usable(ctx, "describe", store.Key{}); err != nil {
		return store.Description{}, err
	}
	d := store.Description{Name: "mini", Durability: store.Durability{Level: store.LevelProcess}, Probe: "by design", Limits: miniLimits, Capabilities: []string{"watch", "check"}}
	if h.is("describes no probe") {
		d.Probe = ""
	}
	return d, nil
}

// sizes checks the limits.
func (h *miniHandle) sizes(op string, key store.Key, c *store.Commit) error {
	if err := h.valid(key); err != nil {
		return err
	}
	lim := miniLimits
	switch {
	case h.is("refuses at the limit"):
		lim.HeadBytes, lim.EntryBytes, lim.CommitBytes = lim.HeadBytes-1, lim.EntryBytes-1, lim.CommitBytes-1
	case h.is("cuts what is too large"):
		c.Head = c.Head[:min(len(c.Head), int(lim.HeadBytes))]
		c.Entries = slices.Clone(c.Entries)
		for i, e := range c.Entries {
			c.Entries[i] = e[:min(len(e), int(lim.EntryBytes))]
		}
	case h.is("has no head limit"):
		lim.HeadBytes = 0
	case h.is("has no entry limit"):
		lim.EntryBytes = 0
	case h.is("has no commit limit"):
		lim.CommitBytes = 0
	}
	if h.is("accepts malformed keys") {
		key = store.Key{Kind: "k", ID: "i"}
	}
	return c.Validate(op, key, lim)
}

func (h *miniHandle) reaches(op string, key store.Key, c store.Commit) (store.Durability, error) {
	have := store.Durability{Level: store.LevelProcess, Replicas: min(c.Require.Replicas, h.m.copies)}
	switch {
	case h.is("acks any durability"):
		return c.Require, nil
	case h.is("acks less than it promises"):
		return store.Durability{Level: store.LevelMemory}, nil
	case h.is("acks no durability"):
		return store.Durability{}, nil
	case h.is("ignores the required durability"):
		return have, nil
	}
	if !have.Reaches(c.Require) {
		return have, &store.Error{Op: op, Key: key, Kind: store.ErrNotDurable}
	}
	return have, nil
}

func (r *miniRecord) find(id string) (miniMade, bool) {
	for _, m := range r.made {
		if m.c.ID == id {
			return m, true
		}
	}
	return miniMade{}, false
}

func (h *miniHandle) replay(op string, r *miniRecord, c store.Commit) (store.Ack, bool, error) {
	m, ok := r.find(c.ID)
	if h.is("ids are global") && !ok {
		m, ok = h.m.ids[c.ID]
	}
	if !ok || h.is("not idempotent") {
		return store.Ack{}, false, nil
	}
	if store.ContentHash(m.c) != store.ContentHash(c) && !h.is("accepts other content") {
		if h.is("compares only heads of a reused id") && bytes.Equal(m.c.Head, c.Head) {
			return m.ack, true, nil
		}
		return store.Ack{}, true, &store.Error{Op: op, Key: r.key, Kind: store.ErrCommitIDReused}
	}
	if h.is("log appended twice on retry") {
		for _, d := range c.Entries {
			r.log = append(r.log, store.Entry{Seq: uint64(len(r.log)) + 1, Revision: r.mark.Revision, Data: d})
		}
	}
	ack := m.ack
	if h.is("answers a retry with the present state") {
		ack.Mark = r.mark
	}
	if !h.is("a repeated ack carries no signals") {
		ack.Signals = r.pending()
	}
	return ack, true, nil
}

func (r *miniRecord) pending() []store.Signal { return slices.Clone(r.signals) }

// apply changes r; the caller holds the lock and has checked everything.
func (h *miniHandle) apply(r *miniRecord, c store.Commit, d store.Durability) store.Ack {
	chain := store.Chain(r.mark.Chain, c)
	if h.is("has a chain of its own") {
		chain = fmt.Sprintf("%x", sha256.Sum256([]byte(r.mark.Chain+c.ID)))
	}
	if h.is("acknowledges before it flushes") {
		before := *r
		h.undo = func() { *r = before }
	}
	keep := bytes.Clone
	switch {
	case h.is("keeps the caller's bytes"):
		keep = func(b []byte) []byte { return b }
	case h.is("stores text, not bytes"):
		keep = func(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("\ufffd")) }
	case h.is("trims newlines"):
		keep = func(b []byte) []byte { return bytes.TrimRight(b, "\n") }
	case h.is("reformats numbers"):
		keep = func(b []byte) []byte {
			if f, err := strconv.ParseFloat(string(b), 64); err == nil {
				return strconv.AppendFloat(nil, f, 'f', -1, 64)
			}
			return bytes.Clone(b)
		}
	}
	entries := c.Entries
	switch {
	case h.is("drops empty entries"):
		entries = slices.DeleteFunc(slices.Clone(entries), func(e []byte) bool { return len(e) == 0 })
	case h.is("stores only the first entry") && len(entries) > 1:
		entries = entries[:1]
	}
	if !(h.is("a commit without entries moves nothing") && len(entries) == 0 && r.mark.Revision > 0) {
		r.mark.Revision++
		r.mark.Chain = chain
		r.marks = append(r.marks, r.mark)
	}
	r.head, r.lastID = keep(c.Head), c.ID
	if h.is("torn commit visible") { // the head is there before its entries
		h.m.mu.Unlock()
		pause()
		h.m.mu.Lock()
	}
	for _, d := range entries {
		r.log = append(r.log, store.Entry{Seq: uint64(len(r.log)) + 1, Revision: r.mark.Revision, Data: keep(d)})
	}
	ack := store.Ack{Mark: r.mark, LogLength: uint64(len(r.log)), Durability: d}
	made := miniMade{store.Commit{ID: c.ID, After: c.After, Head: bytes.Clone(c.Head), Require: c.Require}, ack}
	for _, e := range c.Entries {
		made.c.Entries = append(made.c.Entries, bytes.Clone(e))
	}
	r.made = append(r.made, made)
	h.m.ids[c.ID] = made
	if n := 8; h.is("remembers eight ids") && len(r.made) > n {
		r.made = r.made[len(r.made)-n:]
	}
	r.sum = r.digest()
	return ack
}

func (r *miniRecord) digest() [sha256.Size]byte { return sha256.Sum256([]byte(r.mark.Chain)) }

func (h *miniHandle) Create(ctx context.Context, key store.Key, c store.Commit) (store.Ack, error) {
	if err := h.usable(ctx, "create", key); err != nil {
		return store.Ack{}, err
	}
	if err := h.sizes("create", key, &c); err != nil {
		return store.Ack{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r := h.m.records[h.m.name(key)]
	if h.is("checks, then creates") {
		h.m.mu.Unlock()
		pause()
		h.m.mu.Lock()
	}
	if r != nil && !h.is("creates over what is there") {
		if ack, ok, err := h.replay("create", r, c); ok && !h.is("a repeated create exists") {
			return ack, err
		}
		return store.Ack{}, &store.Error{Op: "create", Key: key, Kind: store.ErrExists}
	}
	d, err := h.reaches("create", key, c)
	if err != nil {
		return store.Ack{}, err
	}
	grave := h.m.graves[h.m.name(key)]
	if h.is("tombstone forgotten") {
		grave = 0
	}
	r = &miniRecord{key: key, released: true, mark: store.Mark{Birth: store.BirthAt(h.m.now, grave)}}
	if old := h.m.records["deleted "+h.m.name(key)]; old != nil && h.is("delete keeps the log") {
		r.log = old.log
	}
	h.m.records[h.m.name(key)] = r
	return h.apply(r, c, d), nil
}

func (h *miniHandle) Commit(ctx context.Context, key store.Key, f store.Fence, c store.Commit) (store.Ack, error) {
	if err := h.usable(ctx, "commit", key); err != nil {
		return store.Ack{}, err
	}
	if err := h.sizes("commit", key, &c); err != nil {
		return store.Ack{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("commit", key)
	if err != nil {
		if old := h.m.records["deleted "+h.m.name(key)]; old != nil && h.is("a commit revives the deleted") {
			h.m.records[h.m.name(key)] = old
			return h.apply(old, c, store.Durability{Level: store.LevelProcess}), nil
		}
		return store.Ack{}, err
	}
	if !h.is("checks the fence before the id") {
		if ack, ok, err := h.replay("commit", r, c); ok {
			return ack, err
		}
	}
	if h.is("remembers refused ids") {
		defer func() { r.nevers = append(r.nevers, c.ID) }()
	}
	if err := h.admits(r, f, c); err != nil {
		if h.is("a refused commit leaves its entries") {
			for _, d := range c.Entries {
				r.log = append(r.log, store.Entry{Seq: uint64(len(r.log)) + 1, Revision: r.mark.Revision, Data: d})
			}
		}
		return store.Ack{}, err
	}
	if h.is("checks the fence before the id") {
		if ack, ok, err := h.replay("commit", r, c); ok {
			return ack, err
		}
	}
	if h.is("check and write are two steps") {
		h.m.mu.Unlock()
		pause()
		h.m.mu.Lock()
	}
	d, err := h.reaches("commit", key, c)
	if err != nil {
		return store.Ack{}, err
	}
	ack := h.apply(r, c, d)
	if !h.is("acks carry no signals") {
		ack.Signals = r.pending()
	}
	if h.is("answers an applied commit with the context's error") {
		h.m.mu.Unlock()
		pause()
		h.m.mu.Lock()
		if err := ctx.Err(); err != nil {
			return store.Ack{}, err
		}
	}
	return ack, nil
}

// admits is the check of fence, revision and chain.
func (h *miniHandle) admits(r *miniRecord, f store.Fence, c store.Commit) error {
	conflict := &store.Error{Op: "commit", Key: r.key, Kind: store.ErrConflict, Revision: r.mark.Revision}
	if h.is("conflicts name no revision") {
		conflict.Revision = 0
	}
	regressed := &store.Error{Op: "commit", Key: r.key, Kind: store.ErrRegressed}
	older, newer := c.After.Revision < r.mark.Revision, c.After.Revision > r.mark.Revision
	hidden := h.is("a failover hides what it lost") && h.m.failedOver
	switch {
	case hidden:
		newer = false
	case h.is("revision compared as float"):
		older, newer = float64(c.After.Revision) < float64(r.mark.Revision), float64(c.After.Revision) > float64(r.mark.Revision)
	case h.is("revision kept in 32 bits"):
		older, newer = uint32(c.After.Revision) < uint32(r.mark.Revision), uint32(c.After.Revision) > uint32(r.mark.Revision)
	case h.is("last writer wins"):
		older, newer = false, false
	case h.is("accepts a newer revision"):
		newer = false
	}
	if h.is("checks the revision before the fence") && older {
		return conflict
	}
	if err := h.holds("commit", r, f); err != nil {
		return err
	}
	birthFree := h.is("ignores the birth a commit builds on") || h.is("no fence check") || h.is("shared records need no birth") && r.key.Kind.Shared()
	switch {
	case c.After.Birth != r.mark.Birth && !birthFree:
		return &store.Error{Op: "commit", Key: r.key, Kind: store.ErrFenced, Fence: r.current()}
	case older:
		return conflict
	case newer && h.is("calls a regression a conflict"):
		return conflict
	case newer:
		return regressed
	case c.After.Chain != "" && c.After.Chain != r.mark.Chain && !h.is("ignores the chain") && !h.is("last writer wins") && !h.is("accepts a newer revision") && !hidden:
		return regressed
	case slices.Contains(r.nevers, c.ID) && !h.is("never-resolve that still applies"):
		return &store.Error{Op: "commit", Key: r.key, Kind: store.ErrCommitIDReused}
	}
	return nil
}

func (h *miniHandle) Resolve(ctx context.Context, key store.Key, f store.Fence, id string) (store.Outcome, error) {
	if err := h.usable(ctx, "resolve", key); err != nil {
		return store.Outcome{}, err
	}
	if err := h.valid(key); err != nil {
		return store.Outcome{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("resolve", key)
	if err != nil {
		return store.Outcome{}, err
	}
	m, applied := r.find(id)
	if h.is("resolves everything as never") {
		applied = false
	}
	if applied && !h.is("an applied commit is resolved only under its fence") {
		return store.Outcome{Applied: true, Ack: m.ack}, nil
	}
	if err := h.holds("resolve", r, f); err != nil {
		return store.Outcome{}, err
	}
	if applied {
		return store.Outcome{Applied: true, Ack: m.ack}, nil
	}
	if h.is("resolves everything as applied") {
		return store.Outcome{Applied: true, Ack: store.Ack{Mark: r.mark, LogLength: uint64(len(r.log)), Durability: store.Durability{Level: store.LevelProcess}}}, nil
	}
	if h.is("never-resolve that still applies") {
		return store.Outcome{Ack: store.Ack{Mark: r.mark, LogLength: uint64(len(r.log))}}, nil
	}
	if !slices.Contains(r.nevers, id) {
		r.mark.Revision++
		r.mark.Chain = store.ChainNever(r.mark.Chain, id)
		r.marks = append(r.marks, r.mark)
		r.nevers = append(r.nevers, id)
		r.sum = r.digest()
		if h.is("a never is the last commit") {
			r.lastID = id
		}
	} else if h.is("fails to resolve twice") {
		return store.Outcome{}, &store.Error{Op: "resolve", Key: key, Kind: store.ErrNotFound}
	}
	return store.Outcome{Ack: store.Ack{Mark: r.mark, LogLength: uint64(len(r.log)), Durability: store.Durability{Level: store.LevelProcess}}}, nil
}

func (h *miniHandle) Close() error {
	h.closed = true
	if h.undo != nil {
		h.m.mu.Lock()
		defer h.m.mu.Unlock()
		h.undo()
	}
	return nil
}

func (h *miniHandle) Delete(ctx context.Context, key store.Key, f store.Fence) error {
	if err := h.usable(ctx, "delete", key); err != nil {
		return err
	}
	if err := h.valid(key); err != nil {
		return err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("delete", key)
	if err != nil {
		return err
	}
	if err := h.holds("delete", r, f); err != nil {
		return err
	}
	if h.is("delete does nothing") {
		return nil
	}
	name := h.m.name(key)
	h.m.graves[name] = r.mark.Birth
	delete(h.m.records, name)
	if h.is("delete keeps the log") || h.is("a commit revives the deleted") || h.is("lists the deleted") || h.is("a failover brings back the deleted") {
		h.m.records["deleted "+name] = r
	}
	return nil
}

func (h *miniHandle) List(ctx context.Context, q store.Query) (store.ListPage, error) {
	if err := h.usable(ctx, "list", store.Key{}); err != nil {
		return store.ListPage{}, err
	}
	if err := h.valid(store.Key{Kind: q.Kind, ID: "x"}); err != nil {
		return store.ListPage{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	var names []string
	for name, r := range h.m.records {
		if h.is("a failover drops the index") && h.m.failedOver {
			break
		}
		if (r.key.Kind == q.Kind || h.is("lists every kind")) && (name[0] == 'k' || h.is("lists the deleted")) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	limit := q.Limit
	if limit <= 0 {
		limit = 100
		if h.is("a list without a limit is endless") {
			limit = 1 << 20
		}
	}
	from := 0
	if h.is("a cursor is an offset") {
		from, _ = strconv.Atoi(q.Cursor)
	} else if q.Cursor != "" {
		for from < len(names) && (names[from] < q.Cursor || names[from] == q.Cursor && !h.is("repeats a record at the page's edge")) {
			from++
		}
	}
	if h.is("ignores the list's limit") {
		limit = 1 << 20
	}
	from = min(from, len(names))
	end := min(from+limit, len(names))
	page := store.ListPage{}
	for _, name := range names[from:end] {
		page.Items = append(page.Items, store.Listed{Record: h.view(h.m.records[name])})
	}
	if end < len(names) {
		page.Next = names[end-1]
		if h.is("a cursor is an offset") {
			page.Next = strconv.Itoa(end)
		}
		if h.is("repeats a record at the page's edge") && end-from == 1 {
			page.Next = names[end]
		}
		if h.is("skips a record at the page's edge") {
			page.Next = names[end]
		}
	}
	if h.is("gives a cursor with an empty page") && len(names) == 0 {
		page.Next = "k"
	}
	if h.is("lists only the first page") {
		page.Next = ""
	}
	if h.is("lists newest state first") {
		sort.SliceStable(page.Items, func(i, j int) bool { return page.Items[i].Record.Mark.Revision > page.Items[j].Record.Mark.Revision })
	}
	return page, nil
}

func (h *miniHandle) view(r *miniRecord) store.Record {
	out := store.Record{
		Key: r.key, Mark: r.mark, Head: bytes.Clone(r.head), LogLength: uint64(len(r.log)), LastCommitID: r.lastID,
		Fence: r.current(), Generation: r.generation, Signals: r.pending(), Released: r.released,
	}
	if h.is("keeps the caller's bytes") {
		out.Head = r.head
	}
	if !r.fence.IsZero() && (!h.m.now.After(r.expires) || r.expires.IsZero()) {
		out.Holder = &store.Holder{Fence: r.fence, Expires: r.expires}
	}
	if h.is("signals live in the handle") {
		out.Signals = slices.Clone(h.signals)
	}
	return out
}

func (h *miniHandle) Load(ctx context.Context, key store.Key) (store.Record, error) {
	if err := h.usable(ctx, "load", key); err != nil {
		return store.Record{}, err
	}
	if err := h.valid(key); err != nil {
		return store.Record{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("load", key)
	if err != nil {
		return store.Record{}, err
	}
	return h.view(r), nil
}

func (h *miniHandle) ReadLog(ctx context.Context, key store.Key, from uint64, limit int) (store.LogPage, error) {
	if err := h.usable(ctx, "read log", key); err != nil {
		return store.LogPage{}, err
	}
	if err := h.valid(key); err != nil {
		return store.LogPage{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("read log", key)
	if err != nil {
		return store.LogPage{}, err
	}
	n := uint64(len(r.log))
	if from > n && h.is("a page past the end is an error") {
		return store.LogPage{}, &store.Error{Op: "read log", Key: key, Kind: store.ErrNotFound}
	}
	if limit <= 0 {
		limit = 256
	}
	if h.is("numbers are cut to 32 bits") {
		from = uint64(uint32(from))
	}
	if h.is("reads one entry too early") && from > 256 {
		from--
	}
	page, size := store.LogPage{Length: n}, 0
	for seq := max(from, 1); seq <= n && len(page.Entries) < limit; seq++ {
		e := r.log[seq-1]
		size += len(e.Data)
		if size > 8<<20 && len(page.Entries) > 0 && !h.is("a page has no size") {
			break
		}
		if !h.is("keeps the caller's bytes") {
			e.Data = bytes.Clone(e.Data)
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}

func (h *miniHandle) Check(ctx context.Context, key store.Key) (store.CheckReport, error) {
	if err := h.usable(ctx, "check", key); err != nil {
		return store.CheckReport{}, err
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	r, err := h.record("check", key)
	if err != nil {
		return store.CheckReport{}, err
	}
	rep := store.CheckReport{Key: key, Birth: r.mark.Birth, Revision: r.mark.Revision, Entries: uint64(len(r.log))}
	if r.sum != r.digest() && !h.is("finds no damage") || h.is("finds damage everywhere") {
		rep.Findings = append(rep.Findings, "the sum differs")
	}
	return rep, nil
}

// name is where a record is kept; each defect here makes two keys share one.
func (m *mini) name(key store.Key) string {
	id := key.ID
	switch m.broken {
	case "two ids in one record: case is folded":
		id = string(bytes.ToLower([]byte(id)))
	case "two ids in one record: cut at NUL":
		if i := bytes.IndexByte([]byte(id), 0); i >= 0 {
			id = id[:i]
		}
	case "two ids in one record: spaces are trimmed":
		id = string(bytes.TrimSpace([]byte(id)))
	case "two ids in one record: paths are cleaned":
		id = string(bytes.ReplaceAll([]byte(id), []byte("//"), []byte("/")))
	case "two ids in one record: names are cut at 255 bytes":
		id = id[:min(len(id), 255)]
	case "two ids in one record: kind and id run together":
		return "k" + string(key.Kind) + id
	case "two ids in one record: accents are dropped":
		id = string(bytes.ReplaceAll(bytes.ReplaceAll([]byte(id), []byte("\u0301"), nil), []byte("é"), []byte("e")))
	}
	return "k" + string(key.Kind) + "\x00" + id
}

// pause lets others run between two steps that a correct store takes as one.
func pause() {
	for range 100 {
		runtime.Gosched()
	}
}

func newUUID() string { return uuid.NewString() }
