package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The changes of a queue's journal.
const (
	QueueAdd    = "add"    // Items[0] with Data, at the end; handed out Before times before
	QueueLease  = "lease"  // Items, each with its Token, to Worker of By until Until
	QueueExtend = "extend" // Token until Until
	QueueDone   = "done"   // Token
	QueueReturn = "return" // Token, to the end
	QueueGone   = "gone"   // the process of By is gone: its leases end at Until
)

// QueueLine is one change of a queue, one line of its journal. A change is never more
// than one line, so a line that is not whole is the last one, and nobody was told of it.
type QueueLine struct {
	Do     string      `json:"do"`
	Items  []QueueItem `json:"items,omitempty"`
	Token  string      `json:"token,omitempty"`
	Worker string      `json:"worker,omitempty"`
	By     string      `json:"by,omitempty"`
	Until  time.Time   `json:"until,omitzero"`
	Before uint64      `json:"before,omitempty"`
	Data   []byte      `json:"data,omitempty"`
}

// QueueItem is an item that a line is about.
type QueueItem struct {
	ID    string `json:"id"`
	Token string `json:"token,omitempty"`
}

// queueSumLen is the length of what every line begins with: {"sum":"xxxxxxxx",
const (
	queueSumStart = `{"sum":"`
	queueSumLen   = len(queueSumStart) + 8 + 2
)

// Encode gives the line, its newline included, and its checksum. It is over the line and
// the checksum of the line before it (0: none), so a line stands nowhere else.
func (l QueueLine) Encode(before uint32) ([]byte, uint32, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, 0, err
	}
	sum := queueSum(before, body[1:])
	out := append(make([]byte, 0, queueSumLen+len(body)), QueueLineStart(sum)...)
	return append(append(out, body[1:]...), '\n'), sum, nil
}

// ParseQueueLine decodes what Encode gave, with its newline, behind a line with the
// checksum before.
func ParseQueueLine(b []byte, before uint32) (l QueueLine, sum uint32, err error) {
	if len(b) < queueSumLen+2 || b[len(b)-1] != '\n' {
		return l, 0, fmt.Errorf("%w: it is not whole", errLine)
	}
	body := b[queueSumLen : len(b)-1]
	sum = queueSum(before, body)
	if !bytes.HasPrefix(b, QueueLineStart(sum)) {
		return l, 0, fmt.Errorf("%w: its checksum does not match", errLine)
	}
	d := json.NewDecoder(bytes.NewReader(append([]byte{'{'}, body...)))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return QueueLine{}, 0, fmt.Errorf("%w: %w", errLine, err)
	}
	again, _, err := l.Encode(before)
	if err == nil && !bytes.Equal(again, b) {
		err = errors.New("it is not in canonical form")
	}
	if err != nil {
		return QueueLine{}, 0, fmt.Errorf("%w: %w", errLine, err)
	}
	return l, sum, nil
}

// QueueLineStart is how a line with that checksum begins.
func QueueLineStart(sum uint32) []byte {
	return append(appendSum(append(make([]byte, 0, queueSumLen), queueSumStart...), sum), `",`...)
}

func queueSum(before uint32, body []byte) uint32 {
	return Sum(append(appendSum(make([]byte, 0, 8+len(body)), before), body...))
}
