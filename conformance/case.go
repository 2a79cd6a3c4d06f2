package conformance

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/loophost/loophost/host/store"
)

// Profile is a group of cases that is judged together.
type Profile string

// The profiles. A backend needs core and loop; the others depend on what it promises.
const (
	ProfileCore    Profile = "core"    // the storage rules S-1 to S-13
	ProfileLoop    Profile = "loop"    // the counted loop on the store: M-1, M-2, M-3, M-6
	ProfileTickets Profile = "tickets" // the work queue; tickets and stop receipts: T-1 to T-15, M-4
	ProfileCrash   Profile = "crash"   // killed processes and damaged data: M-5, S-5, S-7
	ProfileCluster Profile = "cluster" // failover, where the backend has one
)

// Profiles lists all profiles in the order of a report.
func Profiles() []Profile {
	return []Profile{ProfileCore, ProfileLoop, ProfileTickets, ProfileCrash, ProfileCluster}
}

// Need is an ability without which a case can't run; the case is skipped then.
type Need string

// Needs of the harness, one for each optional interface, and of the store.
const (
	NeedCrash   Need = "crash"   // the harness is a Crasher
	NeedDamage  Need = "damage"  // the harness is a Damager
	NeedSpawn   Need = "spawn"   // the harness is a Spawner
	NeedLeases  Need = "leases"  // the store knows a live owner by its lease alone
	NeedProcess Need = "process" // the store reaches durability level process or more
	NeedQueue   Need = "queue"   // the store is a store.Queue and says so
	NeedGroups  Need = "groups"  // the system can prove that a process group is gone

	NeedFailover Need = "failover"       // the harness is a Failover
	NeedLoss     Need = "lossy-failover" // the harness is a LossyFailover
)

// Case is one check of one rule.
type Case struct {
	ID       string // stable: rule, slash, words: "S-2/stale-generation"
	Sentence string // what is true when it passes
	Profile  Profile
	Needs    []Need
	// Run returns nil, or an error that says what was expected and what came.
	Run func(ctx context.Context, e *Env) error
}

// Rule is the id of the rule that c proves: "S-2".
func (c Case) Rule() string {
	rule, _, _ := strings.Cut(c.ID, "/")
	return rule
}

// missing is the reason why c can't run with h on a store described by d, or "".
func (c Case) missing(h Harness, d store.Description) string {
	for _, n := range c.Needs {
		ok, why := false, ""
		switch n {
		case NeedCrash:
			_, ok = h.(Crasher)
			why = "the harness can't crash the store (conformance.Crasher)"
		case NeedDamage:
			_, ok = h.(Damager)
			why = "the harness can't damage stored data (conformance.Damager)"
		case NeedSpawn:
			_, ok = h.(Spawner)
			why = "the harness can't run an owner in a process of its own (conformance.Spawner)"
		case NeedLeases:
			ok = !d.Has("liveness")
			why = "the store knows at once whether an owner lives, so no lease expires under a live one"
		case NeedProcess:
			ok = d.Durability.Level >= store.LevelProcess
			why = "the store promises durability " + d.Durability.String() + "; the case is about process and more"
		case NeedQueue:
			ok = d.Has("queue")
			why = "the store offers no work queue (store.Queue)"
		case NeedGroups:
			ok = provesGroups()
			why = "this system can't prove that a process group is gone; Linux can"
		case NeedFailover:
			_, ok = h.(Failover)
			why = "the harness can't let another node take over (conformance.Failover)"
		case NeedLoss:
			_, ok = h.(LossyFailover)
			why = "the harness can't let a failover lose what one node acknowledged (conformance.LossyFailover)"
		default:
			why = "the case needs " + string(n) + ", which this suite does not know"
		}
		if !ok {
			return why
		}
	}
	return ""
}

// provesGroups reports whether this system can prove that a process group is gone.
func provesGroups() bool { return runtime.GOOS == "linux" }

// Cases is the whole table, ordered by rule, or the cases of the given profiles.
func Cases(profiles ...Profile) []Case {
	all := slices.Concat(
		atomicCases(), limitCases(), concurrentCases(), modelCases(), linearCases(), handleCases(),
		fenceCases(), acquireCases(), sharedCases(), precedenceCases(),
		idempotenceCases(), faultCases(),
		resolveCases(),
		durabilityCases(),
		regressionCases(),
		chainCases(),
		leaseCases(),
		contextCases(),
		idCases(), byteCases(), listCases(),
		costCases(),
		birthCases(),
		signalCases(), wakeCases(),
		loopCases(), crashCases(),
		queueCases(), ticketCases(),
		failoverCases(), lossCases(), failoverLoopCases(),
	)
	slices.SortStableFunc(all, func(a, b Case) int { return byRule(a.Rule(), b.Rule()) })
	if len(profiles) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c Case) bool { return !slices.Contains(profiles, c.Profile) })
}

// byRule orders rule ids by letter and then by number: S-2 before S-10.
func byRule(a, b string) int {
	letterA, numberA, _ := strings.Cut(a, "-")
	letterB, numberB, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(letterA, letterB), cmp.Compare(len(numberA), len(numberB)), cmp.Compare(numberA, numberB))
}

// core is a case of the core profile that needs no special ability.
func core(id, sentence string, run func(context.Context, *Env) error) Case {
	return Case{ID: id, Sentence: sentence, Profile: ProfileCore, Run: run}
}
