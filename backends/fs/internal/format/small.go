package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loophost/loophost/host/store"
)

// KeySumLen is the length of KeySum.
const KeySumLen = 16

// Folder is the name of a key's folder: SHA-256 over kind, a NUL and the id, in
// hex. Names depend on no letter case, length or character of the id (S-10).
func Folder(k store.Key) string {
	h := sha256.Sum256([]byte(string(k.Kind) + "\x00" + k.ID))
	return hex.EncodeToString(h[:])
}

// KeySum is the short form of Folder that index entries carry.
func KeySum(k store.Key) string { return Folder(k)[:KeySumLen] }

// EncodeKey is the content of id.json.
func EncodeKey(k store.Key) ([]byte, error) {
	b, err := json.Marshal(k)
	return append(b, '\n'), err
}

// ParseKey decodes id.json and checks that it belongs to folder.
func ParseKey(b []byte, folder string) (store.Key, error) {
	var k store.Key
	if err := json.Unmarshal(b, &k); err != nil {
		return store.Key{}, fmt.Errorf("id.json: %w", err)
	}
	if err := k.Validate(); err != nil {
		return store.Key{}, fmt.Errorf("id.json: %w", err)
	}
	if Folder(k) != folder {
		return store.Key{}, fmt.Errorf("id.json: the id %q does not belong to the folder %s", k.ID, folder)
	}
	return k, nil
}

// Owner is the content of an owner's lock file, for people and for ErrBusy.
type Owner struct {
	Fence   store.Fence `json:"fence"`
	PID     int         `json:"pid"`
	Host    string      `json:"host"`
	Started time.Time   `json:"started"`
}

// Encode gives the file's content.
func (o Owner) Encode() ([]byte, error) {
	b, err := json.Marshal(o)
	return append(b, '\n'), err
}

// ParseOwner decodes the file; it never decides who owns, so a damaged one is the zero value.
func ParseOwner(b []byte) Owner {
	var o Owner
	if json.Unmarshal(b, &o) != nil {
		return Owner{}
	}
	return o
}

// EncodeSignal is the content of a mailbox file.
func EncodeSignal(s store.Signal) ([]byte, error) {
	b, err := json.Marshal(s)
	return append(b, '\n'), err
}

// ParseSignal decodes a mailbox file. Kind and run are what the file's name
// says; a content that can't be read still is that signal, without a reason.
func ParseSignal(b []byte, kind store.SignalKind, run string) store.Signal {
	var s store.Signal
	if json.Unmarshal(b, &s) != nil || len(s.Reason) > store.MaxReasonBytes {
		return store.Signal{Kind: kind, Run: run, Reason: "the reason can't be read"}
	}
	s.Kind, s.Run = kind, run
	return s
}
