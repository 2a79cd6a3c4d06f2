package ticket

import (
	"errors"
	"strconv"
)

// Role is what a principal acts as.
type Role string

// The roles (T-4).
const (
	RoleSupervisor Role = "supervisor" // the session that hands out work
	RoleUser       Role = "user"       // a person
	RoleRuntime    Role = "runtime"    // a host that runs children
	RoleWorker     Role = "worker"     // one run of one child
)

// Principal is who gives a command. Only the constructors below make one: it has
// no exported field and refuses to be decoded, so no input can claim to be anybody
// (T-4). The zero value is nobody, who may do nothing.
type Principal struct {
	role       Role
	id         string // session, user or host
	assignment string
	generation uint64
	run        string
}

// Supervisor is the session that supervises a scope.
func Supervisor(session string) Principal { return Principal{role: RoleSupervisor, id: session} }

// User is a person whom the host knows under name.
func User(name string) Principal { return Principal{role: RoleUser, id: name} }

// Runtime is the host named id, which tells one coordinator from another. Every
// start of a host is another id: so a restarted coordinator takes over from the one
// it was (T-2). Receipts do not hold it, but for a TakeOver's.
func Runtime(id string) Principal { return Principal{role: RoleRuntime, id: id} }

// Worker is one run of the child session that does an assignment.
func Worker(assignment string, generation uint64, run, session string) Principal {
	return Principal{role: RoleWorker, id: session, assignment: assignment, generation: generation, run: run}
}

// Role is what p acts as; "" for nobody.
func (p Principal) Role() Role { return p.role }

// ID is the session, the user or the host behind p.
func (p Principal) ID() string { return p.id }

// String names p; two principals are equal exactly if it is.
func (p Principal) String() string {
	if p.role == RoleWorker {
		return "worker:" + p.assignment + "/" + strconv.FormatUint(p.generation, 10) + "/" + strconv.Quote(p.run) + "/" + strconv.Quote(p.id)
	}
	return string(p.role) + ":" + p.id
}

// UnmarshalJSON always fails (T-4).
func (p *Principal) UnmarshalJSON([]byte) error {
	return errors.New("a principal is made by the host, never read from input")
}

// MarshalJSON always fails: what is not read is not written either.
func (p Principal) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a principal is not written as JSON; use its String")
}
