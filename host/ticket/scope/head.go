package scope

import (
	"bytes"
	"fmt"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/host/ticket/internal/canon"
	"github.com/loophost/loophost/internal/strictjson"
)

// HeadSchema is the version of Head's JSON.
const HeadSchema = 1

// Head is a scope's head document. It has one form: canonical JSON with every member.
type Head struct {
	Schema         int            `json:"schema"`
	Binding        ticket.Binding `json:"binding"`
	Seq            uint64         `json:"seq"` // commands carried out; the length of the log
	AuthorityEpoch uint64         `json:"authority_epoch"`
	Coordinator    string         `json:"coordinator"` // "": nobody yet
	Tip            string         `json:"tip"`         // SHA-256, hex, of the newest entry; "" at seq 0
	LogBytes       uint64         `json:"log_bytes"`   // of all entries together
	Snapshot       *Snapshot      `json:"snapshot"`    // the newest; nil: none yet
}

// Snapshot says where a scope's snapshot is and what it must be. It lies in Records
// records of KindSnapshot, named by scope, birth, seq and number.
type Snapshot struct {
	Seq      uint64 `json:"seq"`       // what it holds
	Tip      string `json:"tip"`       // the head's at Seq
	LogBytes uint64 `json:"log_bytes"` // the head's at Seq
	Bytes    uint64 `json:"bytes"`     // its own size
	Records  uint64 `json:"records"`   // at least 1
	SHA256   string `json:"sha256"`    // over the hashes of its records, in order
}

func newHead(b ticket.Binding) Head { return Head{Schema: HeadSchema, Binding: b} }

// follow makes h the head after one more entry, which led to state.
func (h *Head) follow(state *ticket.State, entry []byte) {
	h.Seq, h.Tip, h.LogBytes = state.Seq(), canon.Hash(entry), h.LogBytes+uint64(len(entry))
	h.AuthorityEpoch, h.Coordinator = state.Authority().Epoch, state.Authority().Coordinator
}

// head is the head, without snapshot, of the state that s holds.
func (s *Snapshot) head(state *ticket.State) Head {
	return Head{
		Schema: HeadSchema, Binding: state.Binding(), Seq: s.Seq, Tip: s.Tip, LogBytes: s.LogBytes,
		AuthorityEpoch: state.Authority().Epoch, Coordinator: state.Authority().Coordinator,
	}
}

// Encode is the head's canonical JSON.
func (h *Head) Encode() ([]byte, error) {
	data, err := canon.Marshal(h)
	if err != nil {
		return nil, &ticket.Error{Op: "head", Key: h.Binding.ScopeID, Kind: ticket.ScopeDenied, Detail: "the head can't be written as JSON", Err: err}
	}
	return data, nil
}

// DecodeHead reads a stored head. It refuses whatever Encode does not write. Errors:
// store.ErrUnsupported for another schema, store.ErrCorrupt for the rest.
func DecodeHead(data []byte) (Head, error) {
	var h Head
	bad := func(kind error, detail string, err error) (Head, error) {
		return Head{}, &store.Error{Op: "decode head", Kind: kind, Detail: detail, Err: err}
	}
	if err := strictjson.Unmarshal(data, &h); err != nil {
		return bad(store.ErrCorrupt, "", err)
	}
	if h.Schema != HeadSchema {
		return bad(store.ErrUnsupported, fmt.Sprintf("schema %d is unknown; this host knows %d", h.Schema, HeadSchema), nil)
	}
	if err := h.Binding.Validate(); err != nil {
		return bad(store.ErrCorrupt, "", err)
	}
	if (h.Seq == 0) != (h.Tip == "") || h.Tip != "" && !isHash(h.Tip) {
		return bad(store.ErrCorrupt, "its tip does not fit its seq", nil)
	}
	if s := h.Snapshot; s != nil && (s.Seq == 0 || s.Seq > h.Seq || s.LogBytes > h.LogBytes || s.Records == 0 || !isHash(s.Tip) || !isHash(s.SHA256)) {
		return bad(store.ErrCorrupt, "its snapshot does not fit its seq", nil)
	}
	if again, err := h.Encode(); err != nil || !bytes.Equal(again, data) {
		return bad(store.ErrCorrupt, "it is not in its one form: a member is missing, or was written otherwise", err)
	}
	return h, nil
}

// sinceSnapshot is how many bytes of log the next opening reads behind the snapshot.
func (h *Head) sinceSnapshot() uint64 {
	if h.Snapshot == nil {
		return h.LogBytes
	}
	return h.LogBytes - h.Snapshot.LogBytes
}

// isHash reports whether s is a SHA-256 in lower-case hex.
func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
