package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML: one suite for each profile, one
// test case for each case. JUnit has no word for a partial result; the verdict
// and its reason are properties of each suite. A run that executed nothing
// gets a failed test case that says so, because an empty suite would look green.
func (r Report) WriteJUnit(w io.Writer) error {
	doc := junitSuites{Name: "loophost conformance: " + r.Store.Name, Time: seconds(r.Duration)}
	executed := 0
	for _, p := range r.Profiles {
		s := r.junitSuite(p)
		executed += p.Passed + p.Failed
		doc.Suites = append(doc.Suites, s)
	}
	if executed == 0 {
		doc.Suites = append(doc.Suites, junitSuite{
			Name: "run", Tests: 1, Failures: 1, Time: seconds(r.Duration), Timestamp: r.Started.Format(time.RFC3339), Properties: r.properties(),
			Cases: []junitCase{{Class: "run", Name: "executed", Time: seconds(0), Failure: &junitMessage{Message: r.Reason, Text: r.Reason}}},
		})
	}
	for _, s := range doc.Suites {
		doc.Tests += s.Tests
		doc.Failures += s.Failures
		doc.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r Report) junitSuite(p ProfileReport) junitSuite {
	s := junitSuite{
		Name: string(p.Profile), Tests: len(p.Results), Failures: p.Failed, Skipped: p.Skipped,
		Timestamp: r.Started.Format(time.RFC3339), Properties: r.properties(),
	}
	var total time.Duration
	for _, res := range p.Results {
		total += res.Duration
		c := junitCase{Class: string(p.Profile) + "." + res.Rule, Name: res.ID + ": " + res.Sentence, Time: seconds(res.Duration), Out: strings.Join(res.Notes, "\n")}
		first, _, _ := strings.Cut(res.Reason, "\n")
		switch res.Outcome {
		case Failed:
			c.Failure = &junitMessage{Message: first, Text: res.Reason}
		case Skipped:
			c.Skipped = &junitMessage{Message: first}
		}
		s.Cases = append(s.Cases, c)
	}
	s.Time = seconds(total)
	return s
}

func (r Report) properties() []junitProperty {
	ps := []junitProperty{
		{"verdict", string(r.Verdict)},
		{"reason", r.Reason},
		{"seed", fmt.Sprint(r.Seed)},
		{"store", strings.TrimSpace(r.Store.Name + " " + r.Store.Version)},
		{"durability", r.Store.Durability.String()},
		{"environment", r.Environment.Name},
	}
	keys := make([]string, 0, len(r.Environment.Values))
	for k := range r.Environment.Values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		ps = append(ps, junitProperty{"environment." + k, r.Environment.Values[k]})
	}
	return ps
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
