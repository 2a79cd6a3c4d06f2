package redis

import (
	"context"
	"errors"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/loophost/loophost/host/store"
)

const noPermission = "NOPERM: the user may not do that; run: ACL SETUSER <user> ~<prefix>:* +@hash +@sortedset +@stream +@scripting +@connection +info +time +unlink +scan +wait +config|get, and for a Cluster +cluster|slots and +command too"

// explained are the server's refusals by the word that begins them. Each was given
// before anything was written.
var explained = []struct {
	word   string
	kind   error
	detail string
}{
	{"NOAUTH", store.ErrUnavailable, "the server wants a password; put a user and password_file=path in the URL"},
	{"WRONGPASS", store.ErrUnavailable, "the server refuses the user or the password; look at user and password_file in the URL, and at ACL LIST on the server"},
	{"NOPERM", store.ErrUnavailable, noPermission},
	{"WRONGTYPE", store.ErrCorrupt, "a key of the store holds a value of another type, which another program wrote; remove it, or use another prefix= in the URL"},
	{"READONLY", store.ErrUnavailable, "the server has become a read-only replica; try again when a master is known, or let Sentinels name it (redis+sentinel://)"},
	{"CROSSSLOT", store.ErrUnsupported, "the server wants the keys of a record in different slots; something between rewrites keys, or the hash tag was lost"},
	{"OOM", store.ErrUnavailable, "the server's memory is full (maxmemory); nothing was written: delete records, or raise it with CONFIG SET maxmemory"},
	{"MISCONF", store.ErrUnavailable, "the server refuses writes because its last snapshot failed; look at its disk and its log"},
	{"NOREPLICAS", store.ErrUnavailable, "the server refuses writes without enough replicas (min-replicas-to-write); nothing was written"},
	{"LOADING", store.ErrUnavailable, "the server is still loading its data; try again soon"},
	{"MASTERDOWN", store.ErrUnavailable, "the server is a replica whose master is gone; try again when a master is known"},
	{"CLUSTERDOWN", store.ErrUnavailable, "the Cluster has no node for the record; look at CLUSTER INFO"},
	{"TRYAGAIN", store.ErrUnavailable, "the Cluster is moving the record to another node; try again soon"},
	{"ASK", store.ErrUnavailable, "the Cluster is moving the record to another node; try again soon"},
	{"MOVED", store.ErrUnsupported, "the server is part of a Cluster; use redis+cluster:// for it"},
	{"BUSY", store.ErrUnavailable, "the server is busy with a script that does not end; run: SCRIPT KILL"},
	{"NOSCRIPT", store.ErrUnavailable, "the server forgot a script that it was just given"},
}

// fail turns what went wrong below into the port's error. A call that writes and has no
// answer has an outcome that is not known (S-4).
func (s *Store) fail(op string, key store.Key, err error, writes bool) error {
	if err == nil {
		return nil
	}
	e := &store.Error{Op: op, Key: key, Kind: store.ErrUnavailable, Err: err}
	var own *store.Error
	var no *refusal
	var dial *net.OpError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &no):
		e.Kind, e.Detail, e.Err = no.kind, no.detail, no.cause
	case serverSays(err) != "":
		word, _, _ := strings.Cut(serverSays(err), " ")
		for _, x := range explained {
			if word == x.word {
				e.Kind, e.Detail = x.kind, x.detail
				if word == "MOVED" && s.srv.cluster != nil { // to where this client does not know yet
					e.Kind, e.Detail = store.ErrUnavailable, "the Cluster has moved the record to another node; try again soon"
				}
				return e
			}
		}
		e.Detail = s.unnamed(serverSays(err))
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrClosed):
		e.Detail = s.addr.String() + " can't be reached; nothing was sent"
	case writes:
		e.Kind, e.Detail = store.ErrUnknownOutcome, "the connection ended before the answer came"
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			e.Detail = "the context ended before the answer came"
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return e
}

// unnamed explains refusals that begin with ERR only.
func (s *Store) unnamed(text string) string {
	switch {
	case forbids(text):
		return noPermission
	case strings.Contains(text, "DB index"):
		return s.addr.String() + ": the server has no such database; look at its setting databases"
	case strings.Contains(text, "invalid password"), strings.Contains(text, "AUTH"):
		return "the server wants no password, or another; look at user and password_file in the URL"
	case strings.Contains(text, "cluster support disabled"):
		return "the server is not part of a Cluster; use redis:// for it"
	case strings.Contains(text, "max number of clients"):
		return "the server has no connection left (maxclients); use connections=N in the URL"
	}
	return "the server refused the call"
}

// forbids reports whether the server refused a command to the user; inside a script it
// has other words for it.
func forbids(text string) bool {
	return strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "user executing the script can't")
}

// serverSays is the error that the server answered; "": err is no answer.
func serverSays(err error) string {
	var answered goredis.Error
	if errors.As(err, &answered) && !errors.Is(err, goredis.Nil) {
		return answered.Error()
	}
	return ""
}

// passFull is nil for the refusals of a server that is full and can still be read.
func passFull(err error) error {
	if goredis.HasErrorPrefix(err, "OOM") || goredis.HasErrorPrefix(err, "MISCONF") || goredis.HasErrorPrefix(err, "NOREPLICAS") || errors.Is(err, goredis.Nil) {
		return nil
	}
	return err
}

// corrupt is ErrCorrupt with what was found (S-7).
func corrupt(op string, key store.Key, detail string, cause error) error {
	return &store.Error{Op: op, Key: key, Kind: store.ErrCorrupt, Detail: detail, Err: cause}
}
