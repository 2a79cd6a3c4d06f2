package ticketfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/loophost/loophost/cmd/hostctl/internal/strictyaml"
	"github.com/loophost/loophost/host/ticket"
)

// Write is a ticket as ReadRevision reads it.
func Write(t *ticket.Ticket) ([]byte, error) {
	c := t.Contract
	objective := c.Objective
	if strings.HasPrefix(objective, "@") {
		objective = "@" + objective
	}
	e := Entry{ID: &t.ID, DependsOn: list(t.DependsOn), Contract: Contract{
		Title: &c.Title, Objective: &objective, Acceptance: list(c.Acceptance), Constraint: list(c.Constraints), Tool: list(c.AllowedTools),
		MaxAttempts: &c.Retry.MaxAttempts, UserAcceptance: &c.UserAcceptanceRequired,
	}}
	data, err := yaml.MarshalWithOptions(e, yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(true))
	if err == nil && readsAs(data, e) {
		return data, nil
	}
	return flow(e)
}

func list(s []string) *[]string {
	if s == nil {
		s = []string{}
	}
	return &s
}

// readsAs reports whether a document says just what e does. YAML has many ways to
// write a text, and a library may choose one that reads otherwise.
func readsAs(data []byte, e Entry) bool {
	body, err := strictyaml.Document(data)
	var back Entry
	if err != nil || strictyaml.Decode(body, &back, entryKeys) != nil {
		return false
	}
	return reflect.DeepEqual(back, e)
}

// flow writes e with its texts as JSON has them, which YAML reads too.
func flow(e Entry) ([]byte, error) {
	var b bytes.Buffer
	for _, f := range []struct {
		key   string
		value any
	}{
		{"id", e.ID},
		{"depends-on", e.DependsOn},
		{"title", e.Title},
		{"objective", e.Objective},
		{"acceptance", e.Acceptance},
		{"constraint", e.Constraint},
		{"tool", e.Tool},
		{"max-attempts", e.MaxAttempts},
		{"user-acceptance", e.UserAcceptance},
	} {
		data, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		b.WriteString(f.key + ": ")
		b.Write(data)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}
