package conformance

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/loophost/loophost/host/store"
)

// failoverDefects are the ways in which a miniPair can be broken: of its failovers, and
// of what notices their losses.
var failoverDefects = []defect{
	"a failover loses the last commit", "a failover tears the last commit", "a failover forgets the fence", "a failover forgets commit ids",
	"a failover ends leases", "a failover drops the index", "a failover brings back the deleted", "a failover forgets tombstones", "a failover drops signals",
	"a failover hides what it lost", "acks copies that it did not make",
	"no fence check", "ignores the chain", "calls a regression a conflict", "ignores what a claim saw", "says conflict for not found", "resolves everything as applied",
}

// miniPair is mini on a node that has an heir. The heir gets everything at once, up to
// Isolate.
type miniPair struct {
	*mini
	heir       map[string]*miniRecord // what it has since Isolate; nil: everything
	heirGraves map[string]store.Birth
}

var _ LossyFailover = (*miniPair)(nil)

func newMiniPair(d defect) *miniPair {
	m := newMini(d)
	m.copies = 1
	return &miniPair{mini: m}
}

func (p *miniPair) Copies() int { return 1 }

func (p *miniPair) Isolate(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heir, p.heirGraves = map[string]*miniRecord{}, maps.Clone(p.graves)
	for name, r := range p.records {
		p.heir[name] = r.clone()
	}
	if p.broken != "acks copies that it did not make" {
		p.copies = 0
	}
	return nil
}

func (p *miniPair) FailOver(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == "acks copies that it did not make" && p.heir == nil {
		p.lag()
	}
	if p.heir != nil {
		p.records, p.graves, p.heir = p.heir, p.heirGraves, nil
	}
	p.copies, p.failedOver = 1, true
	if p.broken == "a failover forgets tombstones" {
		clear(p.graves)
	}
	for name, r := range maps.Clone(p.records) {
		switch p.broken {
		case "a failover loses the last commit":
			r.lose()
		case "a failover tears the last commit":
			r.log = r.log[:max(len(r.log)-1, 0)]
		case "a failover forgets the fence":
			r.fence, r.generation = store.Fence{}, ""
		case "a failover forgets commit ids":
			r.made = nil
		case "a failover ends leases":
			r.expires = p.now.Add(-1)
		case "a failover drops signals":
			r.signals = nil
		case "a failover brings back the deleted":
			if alive, ok := strings.CutPrefix(name, "deleted "); ok {
				p.records[alive] = r
			}
		}
	}
	return nil
}

// lag loses the newest commit of every record, as a heir does that got it too late.
func (p *miniPair) lag() {
	for _, r := range p.records {
		r.lose()
	}
}

// lose takes the newest commit back.
func (r *miniRecord) lose() {
	n := len(r.made)
	if n < 2 {
		return
	}
	last := r.made[n-2]
	r.made, r.head, r.lastID, r.mark = r.made[:n-1], last.c.Head, last.c.ID, last.ack.Mark
	r.log = slices.DeleteFunc(slices.Clone(r.log), func(e store.Entry) bool { return e.Revision > r.mark.Revision })
	r.sum = r.digest()
}

func (r *miniRecord) clone() *miniRecord {
	c := *r
	c.marks, c.log, c.made = slices.Clone(r.marks), slices.Clone(r.log), slices.Clone(r.made)
	c.nevers, c.signals = slices.Clone(r.nevers), slices.Clone(r.signals)
	return &c
}
