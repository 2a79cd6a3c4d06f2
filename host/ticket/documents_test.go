package ticket

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAChildsDispatchIsStrict(t *testing.T) {
	p, child := admitted(t)
	held := child.Metadata[MetaDispatch]
	d, err := DecodeChildDispatch([]byte(held))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.dispatch("a@1", "run"), d); diff != "" {
		t.Errorf("what was written is read as another:\n%s", diff)
	}
	for _, c := range []struct{ old, new, says string }{
		{`"ticket":"a"`, `"ticket":"a","ticket":"a"`, "ticket"},
		{`"ticket":"a"`, `"ticket":"a","note":1`, "note"},
		{`"ticket":"a"`, `"Ticket":"a"`, "Ticket"},
		{`"ticket":"a"`, `"ticket":7`, "ticket"},
		{`"ticket":"a"`, `"ticket":null`, "ticket"},
		{`"ticket":"a"`, `"ticket":"a/b"`, "ticket"},
		{`,"ticket":"a"`, "", "ticket is missing"},
		{`"generation":1`, `"generation":0`, "generation"},
		{`"generation":1`, `"generation":2`, "assignment"},
		{`"generation":1`, `"generation":1.0`, "generation"},
		{`"generation":1`, `"generation":-1`, "generation"},
		{`"contract_revision":1`, `"contract_revision":0`, "contract_revision"},
		{`"root_session_id":"root"`, `"root_session_id":""`, "root_session_id"},
		{`"scope_id":"scope"`, `"scope_id":"other"`, "dispatch_key"},
		{`"scope_id":"scope"`, `"scope_id":""`, "scope_id"},
		{`"child_birth":"born",`, "", "child_birth"},
		{`"run_id":"run"`, `"run_id":""`, "run_id"},
		{`"run_id":"run",`, "", "receipt.run_id is missing"},
		{`"run_id":"run"`, `"run_id":"` + strings.Repeat("r", 257) + `"`, "run_id"},
		{`"dispatch_key":"scope/a@1/1"`, `"dispatch_key":"scope/a@1/2"`, "dispatch_key"},
		{`"receipt":{"dispatch_key":"scope/a@1/1"`, `"receipt":{"dispatch_key":"scope/x"`, "receipt.dispatch_key"},
		{`{"assignment"`, `{` + strings.Repeat(" ", MaxChildValueBytes) + `"assignment"`, "bytes"},
		{held, "[]", MetaDispatch},
		{held, "null", "null"},
		{held, "", MetaDispatch},
	} {
		if !strings.Contains(held, c.old) {
			t.Fatalf("%s has no %s", held, c.old)
		}
		_, err := DecodeChildDispatch([]byte(strings.Replace(held, c.old, c.new, 1)))
		denied(t, err, ScopeDenied, c.says)
	}
}

// The document is found before a run was prepared, and holds one run only.
func TestAChildsDispatchHoldsOneRun(t *testing.T) {
	p := newPlay(t)
	p.start("a", 1)
	fresh, err := p.s.ChildDispatch("a@1", "root")
	if err != nil {
		t.Fatal(err)
	}
	value, err := fresh.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeChildDispatch([]byte(value))
	if err != nil || read.Receipt != nil || read != fresh {
		t.Fatalf("got %+v, %v; want %+v without a run", read, err, fresh)
	}
	_, err = fresh.Admit(0)
	denied(t, err, ScopeDenied, "no run was prepared")
	_, err = fresh.TaskStop(instance, true)
	denied(t, err, ScopeDenied, "no run was prepared")

	ready, err := fresh.Prepared("run", "child", "born")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ready.Prepared("run", "child", "born"); err != nil || *again.Receipt != *ready.Receipt {
		t.Errorf("the same run again: got %+v, %v", again, err)
	}
	for _, other := range [][3]string{{"other", "child", "born"}, {"run", "other", "born"}, {"run", "child", "later"}} {
		_, err := ready.Prepared(other[0], other[1], other[2])
		denied(t, err, ScopeDenied, "another run")
	}
	_, err = fresh.Prepared("", "child", "born")
	denied(t, err, ScopeDenied, "run_id")
	_, err = ready.TaskStop("00000000-0000-0000-0000-000000000000", true)
	denied(t, err, ScopeDenied, "task_instance")
	_, err = ready.ProcessStop(0, true)
	denied(t, err, ScopeDenied, "pid is 0")
	if r, err := ready.ProcessStop(7, false); err != nil || *r.PID != 7 || r.TaskInstance != nil || r.Completed || r.Receipt != *ready.Receipt || r.ChildBirth != "born" {
		t.Errorf("got %+v, %v; want the pid 7 of the prepared run", r, err)
	}
	_, err = p.s.ChildDispatch("b@1", "root")
	denied(t, err, ScopeDenied, "no such assignment")
	_, err = p.s.ChildDispatch("a@1", "")
	denied(t, err, ScopeDenied, "root_session_id")
}

// A child is found again by its dispatch key.
func TestAChildsSessionFollowsFromItsKey(t *testing.T) {
	ids := map[string]string{}
	for _, key := range []string{"s/a@1/1", "s/a@2/2", "s/a@11/11", "t/a@1/1", strings.Repeat("s", 204)} {
		id := ChildSessionID(key)
		if len(id) != 39 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || id != ChildSessionID(key) {
			t.Errorf("the id of %s is %q", key, id)
		}
		if other, taken := ids[id]; taken {
			t.Errorf("%s and %s have the same child", key, other)
		}
		ids[id] = key
	}
}

// T-14.
func TestAProcessIdentityIsStrict(t *testing.T) {
	held := identity(t, 7)
	if want := `{"boot_id":"boot","host_name":"machine","pid":7,"process_group":7,"start_time":99}`; held != want {
		t.Fatalf("got  %s\nwant %s", held, want)
	}
	for field, bad := range map[string][]string{
		"pid": {"0", "null", `"7"`, "-1", "7.5", "18446744073709551616"}, "start_time": {"0", "null"}, "process_group": {"0", "null"},
		"boot_id": {`""`, `" "`, "null", "7"}, "host_name": {`""`, `"\t"`, "null", `"` + strings.Repeat("h", 257) + `"`},
	} {
		i := strings.Index(held, `"`+field+`":`)
		end := i + strings.IndexAny(held[i:], ",}")
		for _, value := range bad {
			_, err := DecodeProcessIdentity([]byte(held[:i] + `"` + field + `":` + value + held[end:]))
			denied(t, err, ScopeDenied, field)
		}
		_, err := DecodeProcessIdentity([]byte(strings.Replace(held, `"`+field+`"`, `"other"`, 1)))
		denied(t, err, ScopeDenied, "other")
		_, err = DecodeProcessIdentity([]byte("{" + held[i:end] + "," + held[1:]))
		denied(t, err, ScopeDenied, field)
	}
	_, err := DecodeProcessIdentity([]byte("{}"))
	denied(t, err, ScopeDenied, "pid is missing")
}

// T-14: a pid from another boot proves nothing, nor does one from another machine.
func TestAProcessIsVisibleOnItsMachineAndBootOnly(t *testing.T) {
	p, err := DecodeProcessIdentity([]byte(identity(t, 7)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Visible("machine", "boot"); err != nil {
		t.Errorf("on its machine and boot: %v", err)
	}
	denied(t, p.Visible("other", "boot"), AuthorityUnavailable, "machine")
	denied(t, p.Visible("machine", "later"), AuthorityUnavailable, "started anew")
}

func TestAContractHasBounds(t *testing.T) {
	c := newTicket("a", 1).Contract
	data, err := c.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	c.Objective += strings.Repeat("x", MaxContractBytes-len(data))
	if err := c.Validate(); err != nil {
		t.Errorf("65,536 bytes: %v", err)
	}
	c.Objective += "x"
	denied(t, c.Validate(), ContextBudgetExceeded, "65537")
	for says, change := range map[string]func(*Contract){
		"title":              func(c *Contract) { c.Title = " " },
		"objective":          func(c *Contract) { c.Objective = "" },
		"at least one":       func(c *Contract) { c.Acceptance = nil },
		"criterion is blank": func(c *Contract) { c.Acceptance = []string{"x", "\n"} },
		"allowed_tools":      func(c *Contract) { c.AllowedTools = []string{""} },
		"retry.max_attempts": func(c *Contract) { c.Retry.MaxAttempts = MaxAttempts + 1 },
		"UTF-8":              func(c *Contract) { c.Title = "\xff" },
	} {
		c := newTicket("a", 1).Contract
		change(&c)
		denied(t, c.Validate(), InvalidTransition, says)
	}
}

// Decoding is strict: unknown fields, duplicate keys and keys in another case are
// errors, also of what the store gives back.
func TestWhatIsStoredIsReadStrictly(t *testing.T) {
	p, log := sample(t)
	for i := range log {
		data, err := log[i].Canonical()
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range [][2]string{
			{`"events":[`, `"events":[],"events":[`}, {`"events":[`, `"Events":[`}, {`"prev":"`, `"note":1,"prev":"`}, {`"type":"`, `"note":1,"type":"`}, {`"seq":`, `"seq":"`},
		} {
			if _, err := DecodeEntry([]byte(strings.Replace(string(data), change[0], change[1], 1))); !errors.Is(err, AuthorityUnavailable) {
				t.Errorf("%s for %s: got %v, want %v", change[1], change[0], err, AuthorityUnavailable)
			}
		}
	}
	for data, err := range p.s.Parts() {
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range [][2]string{
			{`"schema":1`, `"schema":2`},
			{`"scope_id":"scope"`, `"scope_id":""`},
			{`"schema":1`, `"schema":1,"schema":1`},
			{`"schema":1`, `"note":1,"schema":1`},
			{`"seq":`, `"Seq":`},
			{`"tickets":{"a":{`, `"tickets":{"x":{`},
			{`"tickets":{"a":{`, `"tickets":{"z":null,"a":{`},
			{`"assignments":{"a@1":{`, `"assignments":{"x@1":{`},
			{`"state":"accepted"`, `"state":"done"`},
			{`"state":"submitted"`, `"state":"done"`},
			{`"resume_state":"active"`, `"resume_state":"blocked"`},
			{`"submissions":{"a@1"`, `"submissions":{"x"`},
			{`"intents":{"b@1"`, `"intents":{"x"`},
		} {
			if !strings.Contains(string(data), change[0]) {
				t.Fatalf("the part has no %s:\n%s", change[0], data)
			}
			var b Builder
			if err := b.Add([]byte(strings.Replace(string(data), change[0], change[1], 1))); !errors.Is(err, AuthorityUnavailable) {
				t.Errorf("%s for %s: got %v, want %v", change[1], change[0], err, AuthorityUnavailable)
			}
		}
	}
}

// An entry follows the state before it, and no other.
func TestAnEntryFollowsItsState(t *testing.T) {
	p, log := sample(t)
	s, err := New(p.s.Binding())
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, e Entry) {
		t.Helper()
		before := canonical(t, s)
		if _, err := s.Apply(&e); !errors.Is(err, AuthorityUnavailable) {
			t.Errorf("%s: got %v, want %v", what, err, AuthorityUnavailable)
		}
		if string(before) != string(canonical(t, s)) {
			t.Errorf("%s changed the state", what)
		}
	}
	refused("a later entry", log[1])
	if s, err = s.Apply(&log[0]); err != nil {
		t.Fatal(err)
	}
	refused("the same entry again", log[0])
	again := log[0]
	again.Seq = 2
	refused("an entry whose receipt is of another seq", again)
	bad := log[1]
	bad.Receipt = []byte("{}")
	refused("an entry with another's receipt", bad)
	bad = log[1]
	bad.Receipt = log[0].Receipt
	refused("an entry whose operation was carried out", bad)
}

// Numbers are exact up to 2^64 - 1.
func TestNumbersAreExact(t *testing.T) {
	s, err := New(Binding{ScopeID: "s", SupervisorSessionID: "boss", BindingRevision: math.MaxUint64})
	if err != nil {
		t.Fatal(err)
	}
	if again := reopened(t, s); again.Binding() != s.Binding() || !strings.Contains(string(canonical(t, s)), `"binding_revision":18446744073709551615`) {
		t.Errorf("got %+v, want %+v", again.Binding(), s.Binding())
	}
	for _, b := range []Binding{{}, {ScopeID: "s"}, {SupervisorSessionID: "boss"}, {ScopeID: strings.Repeat("s", 257), SupervisorSessionID: "boss"}} {
		if _, err := New(b); !errors.Is(err, ScopeDenied) {
			t.Errorf("%+v: got %v, want %v", b, err, ScopeDenied)
		}
	}
}

// Parts of different states do not make one.
func TestPartsAreOfOneState(t *testing.T) {
	p := newPlay(t)
	parts := map[uint64][]byte{}
	for range 2 {
		for data, err := range p.s.Parts() {
			if err != nil {
				t.Fatal(err)
			}
			parts[p.s.Seq()] = data
		}
		p.do(boss, Create{Tickets: []NewTicket{newTicket("t"+strconv.Itoa(int(p.s.Seq())), 1)}})
	}
	var b Builder
	if _, err := b.State(); !errors.Is(err, AuthorityUnavailable) {
		t.Errorf("no part: got %v, want %v", err, AuthorityUnavailable)
	}
	for _, data := range parts {
		if err := b.Add(data); err != nil && !errors.Is(err, AuthorityUnavailable) {
			t.Errorf("got %v, want %v", err, AuthorityUnavailable)
		} else if err != nil {
			return
		}
	}
	t.Errorf("parts of the seqs %v made one state", slices.Sorted(maps.Keys(parts)))
}
