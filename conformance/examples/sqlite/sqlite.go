package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/store/ledger"
)

//go:embed schema.sql
var schema string

// reached is what a transaction reaches: it ends with a flush.
var reached = store.Durability{Level: store.LevelPower}

type engine struct {
	db   *sql.DB
	file string
}

// Open opens the store in file, which is made if it is not there. clock gives the
// time for births and leases; nil: time.Now.
func Open(ctx context.Context, file string, clock func() time.Time) (store.Store, error) {
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+settings.Encode())
	if err != nil {
		return nil, ledger.Error(ctx, "open", store.Key{}, err)
	}
	db.SetMaxOpenConns(1) // SQLite has one writer at a time, and a queue is fairer than its lock
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, ledger.Error(ctx, "open", store.Key{}, errors.Join(kept(err), db.Close()))
	}
	return ledger.Over(&engine{db, file}, reached, clock), nil
}

func (e *engine) Close() error { return e.db.Close() }

func (e *engine) Describe(ctx context.Context) (store.Description, error) {
	var version string
	err := e.db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version)
	return store.Description{
		Name: "sqlite", Version: version, Location: e.file, Durability: reached,
		Probe:        "by its settings: each commit flushes the write-ahead log (synchronous=FULL)",
		Capabilities: []string{"processes"},
	}, err
}

func (e *engine) Do(ctx context.Context, key store.Key, write bool, f func(ledger.Tx) error) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	begun, err := conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: !write})
	if err != nil {
		return err
	}
	if err := f(&tx{Tx: begun, key: []byte(key.String())}); err != nil || !write {
		return errors.Join(kept(err), begun.Rollback())
	}
	if err := begun.Commit(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
	}
	return nil
}

// kept marks an error of SQLite that says that the file is damaged.
func kept(err error) error {
	var code *driver.Error
	if errors.As(err, &code) && (code.Code()&0xff == lib.SQLITE_CORRUPT || code.Code() == lib.SQLITE_NOTADB) {
		return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return err
}

func (e *engine) Rows(ctx context.Context, kind store.Kind, after string, n int) ([]ledger.Row, error) {
	prefix := string(kind) + "/"
	rows, err := e.db.QueryContext(ctx, "SELECT key, state, head, sum FROM record WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
		[]byte(prefix+after), []byte(string(kind)+"0"), n) // "0" is the character after "/"
	if err != nil {
		return nil, kept(err)
	}
	defer rows.Close()
	var found []ledger.Row
	for rows.Next() {
		var key, doc, head, sum []byte
		if err := rows.Scan(&key, &doc, &head, &sum); err != nil {
			return nil, kept(err)
		}
		row := ledger.Row{ID: string(key[len(prefix):]), Head: head}
		row.State, row.Err = decode(doc, head, sum)
		found = append(found, row)
	}
	return found, kept(rows.Err())
}
