package pluginapi

// InvalidError says which rule of this contract a document breaks. Validation
// stops at the first one.
type InvalidError struct {
	Document string // "manifest", "decision", "hook declaration", "tool"
	Field    string // path of the field, as in its JSON: "hooks[1].point"
	Problem  string // what was found, and what is wanted
}

// Error is document, field and problem on one line.
func (e *InvalidError) Error() string { return e.Document + ": " + e.Field + ": " + e.Problem }

// broken is a rule that was broken below a document's root; the zero value: none was.
type broken struct{ field, problem string }

func (b broken) under(prefix string) broken { return broken{prefix + "." + b.field, b.problem} }

func (b broken) err(document string) error {
	if b == (broken{}) {
		return nil
	}
	return &InvalidError{Document: document, Field: b.field, Problem: b.problem}
}
