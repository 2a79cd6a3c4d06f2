package conformance

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loophost/loophost/host/store"
)

// Options chooses what Check runs. The zero value runs the core profile with seed 1.
type Options struct {
	Seed     uint64         // decides every random choice; 0: 1
	Profiles []Profile      // none: core
	Match    *regexp.Regexp // only cases whose id matches; nil: all
	Timeout  time.Duration  // for one case; 0: 2 minutes
	// Namespace is part of every record's name, so that two runs on one store
	// don't meet; "": a random one. At most 64 bytes are of use.
	Namespace string
	Progress  func(Result) // called after each case; may be nil

	patience time.Duration // see Env; 0: 5 s. Only the suite's own tests are less patient.
}

const (
	defaultTimeout  = 2 * time.Minute
	defaultPatience = 5 * time.Second
	// grace is how long a case may take to return after its context ended.
	grace = 10 * time.Second
)

func (o Options) normal() Options {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Profiles) == 0 {
		o.Profiles = []Profile{ProfileCore}
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.patience <= 0 {
		o.patience = defaultPatience
	}
	if o.Namespace == "" {
		o.Namespace = uuid.NewString()
	}
	return o
}

// Check runs the table against h and reports. The error is not nil only when it
// could not look at all (no handle, no description) or ctx ended before the last
// case; the report then holds what was done until then. That a case failed is
// in the report: see Report.Verdict.
func Check(ctx context.Context, h Harness, o Options) (Report, error) {
	return check(ctx, h, o.normal(), Cases())
}

func check(ctx context.Context, h Harness, o Options, cases []Case) (Report, error) {
	r, err := newReport(ctx, h, o)
	if err != nil {
		return r, err
	}
	for _, c := range cases {
		if !slices.Contains(o.Profiles, c.Profile) || o.Match != nil && !o.Match.MatchString(c.ID) {
			continue
		}
		if ctx.Err() != nil {
			r.finish()
			return r, fmt.Errorf("conformance check ended before %s: %w", c.ID, context.Cause(ctx))
		}
		res := runCase(ctx, h, r.Store, o, c)
		r.add(c.Profile, res)
		if o.Progress != nil {
			o.Progress(res)
		}
	}
	r.finish()
	return r, nil
}

func newReport(ctx context.Context, h Harness, o Options) (Report, error) {
	r := Report{Schema: ReportSchema, Seed: o.Seed, Namespace: o.Namespace, Started: time.Now().UTC(), Verdict: VerdictFailed}
	for _, p := range o.Profiles {
		r.Profiles = append(r.Profiles, ProfileReport{Profile: p, Results: []Result{}})
	}
	var err error
	if r.Environment, err = h.Environment(ctx); err != nil {
		return r, fmt.Errorf("describe the environment: %w", err)
	}
	s, err := h.Open(ctx)
	if err != nil {
		return r, fmt.Errorf("open the store: %w", err)
	}
	defer s.Close()
	if r.Store, err = s.Describe(ctx); err != nil {
		return r, fmt.Errorf("describe the store: %w", err)
	}
	return r, nil
}

// runCase runs one case so that nothing it does, short of ending the process,
// keeps the cases after it from running.
func runCase(ctx context.Context, h Harness, d store.Description, o Options, c Case) Result {
	res := Result{ID: c.ID, Rule: c.Rule(), Sentence: c.Sentence}
	if why := c.missing(h, d); why != "" {
		res.Outcome, res.Reason = Skipped, why
		return res
	}
	start := time.Now()
	e := newEnv(h, d, o, c.ID)
	cctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- guarded(cctx, c, e) }()
	var err error
	select {
	case err = <-done:
		e.close(ctx)
	case <-expired(cctx, grace):
		// Its handles are still in use: they can't be closed safely.
		err = failf("the case did not return within %s after its time (%s) was over", grace, o.Timeout)
	}
	res.Outcome, res.Duration = Passed, time.Since(start)
	if err != nil {
		res.Outcome, res.Reason = Failed, err.Error()
	}
	e.mu.Lock()
	res.Notes = slices.Clone(e.notes)
	e.mu.Unlock()
	return res
}

// guarded turns a panic of the backend into a failure of the case.
func guarded(ctx context.Context, c Case, e *Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failf("panic: %v\n%s", p, strings.TrimSpace(string(debug.Stack())))
		}
	}()
	return c.Run(ctx, e)
}

// expired is closed d after ctx ended.
func expired(ctx context.Context, d time.Duration) <-chan struct{} {
	ch := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(ch) }) })
	return ch
}
