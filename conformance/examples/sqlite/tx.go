package sqlite

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

// tx is one transaction on one record.
type tx struct {
	*sql.Tx
	key []byte
}

// one reads a row into the values; false: there is none.
func (t *tx) one(into []any, query string, args ...any) (bool, error) {
	err := t.QueryRow(query, append([]any{t.key}, args...)...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// exec changes rows of the record.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.Exec(query, append([]any{t.key}, args...)...)
	return err
}

func (t *tx) Load() (*ledger.State, []byte, error) {
	var doc, head, sum []byte
	found, err := t.one([]any{&doc, &head, &sum}, "SELECT state, head, sum FROM record WHERE key = ?")
	if !found {
		return nil, nil, err
	}
	st, err := decode(doc, head, sum)
	return st, head, err
}

// decode reads a record's state; one that the checksum denies is ErrCorrupt (S-7).
func decode(doc, head, sum []byte) (*ledger.State, error) {
	st := new(ledger.State)
	if err := json.Unmarshal(doc, st); err != nil {
		return nil, fmt.Errorf("the record's row: %w: %w", store.ErrCorrupt, err)
	}
	if !bytes.Equal(sum, sumOf(doc, head)) {
		return st, fmt.Errorf("the record's row does not match its checksum: %w", store.ErrCorrupt)
	}
	return st, nil
}

func (t *tx) Grave() (birth store.Birth, err error) {
	_, err = t.one([]any{(*int64)(&birth)}, "SELECT birth FROM grave WHERE key = ?")
	return birth, err
}

func (t *tx) Settled(id string) (*ledger.Settled, error) {
	var doc []byte
	found, err := t.one([]any{&doc}, "SELECT what FROM settled WHERE key = ? AND commit_id = ?", id)
	if !found {
		return nil, err
	}
	known := new(ledger.Settled)
	return known, json.Unmarshal(doc, known)
}

func (t *tx) Chain(revision uint64) (chain string, err error) {
	_, err = t.one([]any{&chain}, "SELECT chain FROM settled WHERE key = ? AND revision = ?", int64(revision))
	return chain, err
}

func (t *tx) Entries(seq uint64, f func(store.Entry) bool) error {
	rows, err := t.Query("SELECT seq, revision, data, sum FROM entry WHERE key = ? AND seq >= ? ORDER BY seq", t.key, int64(seq))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e store.Entry
		var sum []byte
		if err := rows.Scan(&e.Seq, &e.Revision, &e.Data, &sum); err != nil {
			return err
		}
		if !bytes.Equal(sum, sumOf(e.Data)) {
			return fmt.Errorf("entry %d does not match its checksum: %w", e.Seq, store.ErrCorrupt)
		}
		if !f(e) {
			return nil
		}
	}
	return rows.Err()
}

func (t *tx) Put(c ledger.Change) error {
	head := c.Head
	if !c.Applied { // the head stays
		if _, err := t.one([]any{&head}, "SELECT head FROM record WHERE key = ?"); err != nil {
			return err
		}
	}
	doc, err := json.Marshal(c.State)
	if err != nil {
		return err
	}
	if err := t.exec("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", doc, whole(head), sumOf(doc, head)); err != nil || c.ID == "" {
		return err
	}
	if doc, err = json.Marshal(c.Settled); err != nil {
		return err
	}
	revision := int64(c.State.Mark.Revision)
	if err := t.exec("INSERT INTO settled VALUES (?, ?, ?, ?, ?)", revision, c.State.Mark.Chain, c.ID, doc); err != nil {
		return err
	}
	first := int64(c.State.LogLength) - int64(len(c.Entries)) + 1
	for i, e := range c.Entries {
		if err := t.exec("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", first+int64(i), revision, whole(e), sumOf(e)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) Delete(grave store.Birth) error {
	err := t.exec("INSERT OR REPLACE INTO grave VALUES (?, ?)", int64(grave))
	for _, table := range []string{"record", "entry", "settled"} {
		err = errors.Join(err, t.exec("DELETE FROM "+table+" WHERE key = ?"))
	}
	return err
}

// whole is b, and never nil, which would be stored as NULL.
func whole(b []byte) []byte { return append([]byte{}, b...) }

func sumOf(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}
