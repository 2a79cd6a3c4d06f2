package ticket

import (
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/host/ticket/internal/pmap"
	"github.com/loophost/loophost/internal/strictjson"
)

// snapshot is a scope, or a part of one, as JSON.
type snapshot struct {
	Schema         int                       `json:"schema"`
	Binding        Binding                   `json:"binding"`
	Seq            uint64                    `json:"seq"`
	AuthorityEpoch uint64                    `json:"authority_epoch"`
	Coordinator    string                    `json:"coordinator"`
	Tickets        map[string]*Ticket        `json:"tickets"`
	Assignments    map[string]*Assignment    `json:"assignments"`
	Submissions    map[string]*Submission    `json:"submissions"`
	Intents        map[string]*Intent        `json:"intents"`
	Receipts       map[string]jsontext.Value `json:"receipts"`
}

func (s *State) part() *snapshot {
	return &snapshot{
		Schema: SnapshotSchema, Binding: s.binding, Seq: s.seq, AuthorityEpoch: s.authority.Epoch, Coordinator: s.authority.Coordinator,
		Tickets: map[string]*Ticket{}, Assignments: map[string]*Assignment{}, Submissions: map[string]*Submission{},
		Intents: map[string]*Intent{}, Receipts: map[string]jsontext.Value{},
	}
}

// Canonical is the whole scope's canonical JSON: what must stay the same, byte by
// byte, over a refusal, a replay and a reopening. It costs O(scope).
func (s *State) Canonical() ([]byte, error) {
	p := s.part()
	for k, v := range s.tickets.All() {
		p.Tickets[k] = v
	}
	for k, v := range s.assignments.All() {
		p.Assignments[k] = v
	}
	for k, v := range s.submissions.All() {
		p.Submissions[k] = v
	}
	for k, v := range s.intents.All() {
		p.Intents[k] = v
	}
	for k, v := range s.receipts.All() {
		p.Receipts[k] = v
	}
	return canon.Marshal(p)
}

// Bounds of one part; the item that reaches a bound is still in it.
const (
	partItems = 256
	partBytes = 1 << 20
)

// Parts writes the scope as documents of at most 256 items and 1 MiB (or the one
// item above it) each, so that neither writing nor reading one needs all of it at
// once. Builder reads them.
func (s *State) Parts() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		p, n, size := s.part(), 0, 0
		flush := func() bool {
			data, err := canon.Marshal(p)
			p, n, size = s.part(), 0, 0
			return yield(data, err) && err == nil
		}
		full := func(bytes int) bool {
			n++
			size += bytes
			return n >= partItems || size >= partBytes
		}
		// Tickets come first: an assignment belongs to one.
		ok := each(s.tickets, func(k string, v *Ticket) { p.Tickets[k] = v }, full, flush) &&
			each(s.assignments, func(k string, v *Assignment) { p.Assignments[k] = v }, full, flush) &&
			each(s.submissions, func(k string, v *Submission) { p.Submissions[k] = v }, full, flush) &&
			each(s.intents, func(k string, v *Intent) { p.Intents[k] = v }, full, flush) &&
			each(s.receipts, func(k string, v []byte) { p.Receipts[k] = v }, full, flush)
		if ok {
			flush() // also of an empty scope there is one part
		}
	}
}

func each[V any](m pmap.Map[V], add func(string, V), full func(bytes int) bool, flush func() bool) bool {
	for k, v := range m.All() {
		if add(k, v); full(weight(v)) && !flush() {
			return false
		}
	}
	return true
}

// weight is about how many bytes an item adds to a part. One that can't be written
// weighs nothing: its part says so.
func weight(v any) int {
	if receipt, ok := v.([]byte); ok {
		return len(receipt)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(data)
}

// Builder puts a state together from its parts.
type Builder struct {
	state *State
}

// Add reads a part strictly. All parts must be of one scope and one seq.
func (b *Builder) Add(data []byte) error {
	var p snapshot
	bad := func(detail string, err error) error {
		return &Error{Op: "decode", Key: "snapshot", Kind: AuthorityUnavailable, Detail: detail, Err: err}
	}
	if err := strictjson.Unmarshal(data, &p); err != nil {
		return bad("", err)
	}
	if p.Schema != SnapshotSchema {
		return bad(fmt.Sprintf("schema %d is unknown; this host knows %d", p.Schema, SnapshotSchema), nil)
	}
	if err := p.Binding.Validate(); err != nil {
		return bad(err.Error(), nil)
	}
	head := State{binding: p.Binding, seq: p.Seq, authority: Authority{p.AuthorityEpoch, p.Coordinator}}
	if b.state == nil {
		b.state = &head
	}
	if s := b.state; s.binding != head.binding || s.seq != head.seq || s.authority != head.authority {
		return bad("its parts are of different states", nil)
	}
	for id, t := range p.Tickets {
		if t == nil || t.ID != id || t.Contract == nil {
			return bad(fmt.Sprintf("ticket %q is not whole", id), nil)
		}
		if why := t.whole(); why != "" {
			return bad(why, nil)
		}
		b.state.putTicket(t)
	}
	for id, a := range p.Assignments {
		if a == nil || a.ID != id {
			return bad(fmt.Sprintf("assignment %q is not whole", id), nil)
		}
		if _, ok := b.state.tickets.Get(a.Ticket); !ok {
			return bad(fmt.Sprintf("assignment %q is of no ticket", id), nil)
		}
		if why := a.whole(); why != "" {
			return bad(why, nil)
		}
		b.state.putAssignment(a)
	}
	for id, v := range p.Submissions {
		if v == nil || v.ID != id {
			return bad(fmt.Sprintf("submission %q is not whole", id), nil)
		}
		b.state.submissions = b.state.submissions.Put(id, v)
	}
	for id, v := range p.Intents {
		if v == nil || v.Assignment != id {
			return bad(fmt.Sprintf("intent %q is not whole", id), nil)
		}
		b.state.intents = b.state.intents.Put(id, v)
	}
	for id, v := range p.Receipts {
		b.state.receipts = b.state.receipts.Put(id, v)
	}
	return nil
}

// State is what the parts make; an error where there was none.
func (b *Builder) State() (*State, error) {
	if b.state == nil {
		return nil, &Error{Op: "decode", Key: "snapshot", Kind: AuthorityUnavailable, Detail: "it has no part"}
	}
	return b.state, nil
}
