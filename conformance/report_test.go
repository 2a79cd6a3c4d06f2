package conformance

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func oddReport(t *testing.T) Report {
	t.Helper()
	r, err := check(t.Context(), newMini(""), Options{Seed: 42, Profiles: []Profile{ProfileCore, ProfileCrash}}.normal(), odd())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJSONReportComesBackWhole(t *testing.T) {
	want := oddReport(t)
	var b bytes.Buffer
	if err := want.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report after a round trip (-want +got):\n%s", diff)
	}
	if got.Schema != ReportSchema || got.Seed != 42 {
		t.Errorf("want schema %d and seed 42, got %d and %d", ReportSchema, got.Schema, got.Seed)
	}
}

func TestJUnitReportCountsAndExplains(t *testing.T) {
	var b bytes.Buffer
	if err := oddReport(t).WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("want well-formed XML, got %v in\n%s", err, b.String())
	}
	if got.Tests != 5 || got.Failures != 2 || got.Skipped != 1 || len(got.Suites) != 2 {
		t.Errorf("want 5 tests, 2 failures, 1 skipped in 2 suites, got %d, %d, %d in %d", got.Tests, got.Failures, got.Skipped, len(got.Suites))
	}
	cases := got.Suites[0].Cases
	if f := cases[1].Failure; f == nil || f.Text != "want <a> & b, got\nc" || f.Message != "want <a> & b, got" {
		t.Errorf("want the failure's text and its first line, got %+v", f)
	}
	if s := cases[3].Skipped; s == nil || !strings.Contains(s.Message, "magic") {
		t.Errorf("want the reason of the skip, got %+v", s)
	}
	props := map[string]string{}
	for _, p := range got.Suites[0].Properties {
		props[p.Name] = p.Value
	}
	if props["seed"] != "42" || props["verdict"] != "failed" || props["environment"] == "" {
		t.Errorf("want seed, verdict and environment as properties, got %v", props)
	}
}

func TestJUnitReportOfAnEmptyRunIsRed(t *testing.T) {
	r, err := check(t.Context(), newMini(""), Options{}.normal(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil || got.Failures != 1 {
		t.Errorf("want one failure, got %d, error %v", got.Failures, err)
	}
}

func TestTableShowsWhatDidNotPass(t *testing.T) {
	var b bytes.Buffer
	if err := oddReport(t).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed         42", "PROFILE", "failed S-1/fails: It fails.", "    want <a> & b, got\n    c", "failed S-1/panics", "skipped S-1/skipped", "magic", "note S-1/passes\n    a remark", "failed: 2 cases failed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("table: want %q in it, got\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "It passes.") {
		t.Errorf("table: want no line for a case that passed, got\n%s", b.String())
	}
}
