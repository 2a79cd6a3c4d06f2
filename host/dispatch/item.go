package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/host/ticket"
	"github.com/loophost/loophost/internal/strictjson"
)

// QueueName is the queue of a scope's dispatches: a name that every scope id has.
func QueueName(scopeID string) string {
	sum := sha256.Sum256([]byte(scopeID))
	return "dispatch-" + hex.EncodeToString(sum[:16])
}

// item is what the queue holds of a dispatch. It says nothing that is believed: the
// scope has the assignment.
type item struct {
	ScopeID    string `json:"scope_id"`
	Assignment string `json:"assignment"`
}

// itemOf is the queue's item of an intent. Its id is the dispatch key, by its hash
// where the key is longer than an id may be.
func itemOf(scopeID string, i *ticket.Intent) (store.Item, error) {
	data, err := json.Marshal(item{scopeID, i.Assignment})
	id := i.DispatchKey
	if len(id) > store.MaxItemIDBytes {
		id = ticket.ChildSessionID(id)
	}
	return store.Item{ID: id, Data: data}, err
}

func decodeItem(data []byte) (item, error) {
	var i item
	err := strictjson.Unmarshal(data, &i)
	return i, err
}
