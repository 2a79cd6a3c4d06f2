package conformance

import (
	"strings"
	"time"

	"github.com/loophost/loophost/host/store"
)

// ReportSchema is the version of the report's JSON form.
const ReportSchema = 1

// Outcome of one case.
type Outcome string

// The outcomes. There is no fourth: a case that did not run is skipped, with a reason.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Verdict of a profile or of a report.
type Verdict string

// The verdicts, best first.
const (
	VerdictPassed  Verdict = "passed"
	VerdictPartial Verdict = "partial" // nothing failed, and a case was skipped
	VerdictFailed  Verdict = "failed"  // a case failed, or nothing was executed
)

// Result is what came of one case.
type Result struct {
	ID       string        `json:"id"`
	Rule     string        `json:"rule"`
	Sentence string        `json:"sentence"`
	Outcome  Outcome       `json:"outcome"`
	Reason   string        `json:"reason,omitempty"` // of a failure or a skip
	Notes    []string      `json:"notes,omitempty"`  // what the case could not try
	Duration time.Duration `json:"duration_ns"`
}

// ProfileReport is what came of one profile.
type ProfileReport struct {
	Profile Profile  `json:"profile"`
	Verdict Verdict  `json:"verdict"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Results []Result `json:"results"`
}

// Report is what came of a run.
type Report struct {
	Schema      int               `json:"schema"`
	Verdict     Verdict           `json:"verdict"`
	Reason      string            `json:"reason"` // of the verdict, one sentence
	Seed        uint64            `json:"seed"`
	Namespace   string            `json:"namespace"`
	Started     time.Time         `json:"started"`
	Duration    time.Duration     `json:"duration_ns"`
	Environment Environment       `json:"environment"`
	Store       store.Description `json:"store"`
	Profiles    []ProfileReport   `json:"profiles"`
}

func (r *Report) add(p Profile, res Result) {
	for i := range r.Profiles {
		if r.Profiles[i].Profile == p {
			r.Profiles[i].add(res)
		}
	}
}

func (p *ProfileReport) add(res Result) {
	p.Results = append(p.Results, res)
	switch res.Outcome {
	case Passed:
		p.Passed++
	case Failed:
		p.Failed++
	default:
		p.Skipped++
	}
}

func (r *Report) finish() {
	r.Duration = time.Since(r.Started)
	executed, failed, coreSkipped := 0, 0, 0
	var idle []string // profiles of which nothing was executed
	for i := range r.Profiles {
		p := &r.Profiles[i]
		executed += p.Passed + p.Failed
		failed += p.Failed
		if p.Profile == ProfileCore {
			coreSkipped += p.Skipped
		}
		if p.Skipped > 0 && p.Passed+p.Failed == 0 {
			idle = append(idle, string(p.Profile))
		}
		switch {
		case p.Failed > 0 || p.Passed == 0:
			p.Verdict = VerdictFailed
		case p.Skipped > 0:
			p.Verdict = VerdictPartial
		default:
			p.Verdict = VerdictPassed
		}
	}
	switch {
	case executed == 0:
		r.Verdict, r.Reason = VerdictFailed, "no case was executed"
	case failed > 0:
		r.Verdict, r.Reason = VerdictFailed, plural(failed, "case")+" failed"
	case coreSkipped > 0:
		r.Verdict, r.Reason = VerdictPartial, plural(coreSkipped, "core case")+" skipped"
	case len(idle) > 0:
		r.Verdict, r.Reason = VerdictPartial, "nothing was executed of the profile "+strings.Join(idle, ", ")
	default:
		r.Verdict, r.Reason = VerdictPassed, "every case that ran passed, and no core case was skipped"
	}
}
