package ticket

// related checks the parents and dependencies of tickets that were just made: they
// exist, and no line comes back to where it began. No older ticket can know of a new
// one, so a cycle is one of new tickets alone, and each is looked at once.
func (d *draft) related(batch []NewTicket) error {
	made := make(map[string]bool, len(batch))
	for i := range batch {
		made[batch[i].ID] = true
	}
	for i := range batch {
		t, _ := d.state.tickets.Get(batch[i].ID)
		if err := d.exist(t); err != nil {
			return err
		}
	}
	parents := search{next: func(id string) []string {
		if t, _ := d.state.tickets.Get(id); made[t.Parent] {
			return []string{t.Parent}
		}
		return nil
	}}
	depends := search{next: func(id string) []string {
		t, _ := d.state.tickets.Get(id)
		var out []string
		for _, dep := range t.DependsOn {
			if made[dep] {
				out = append(out, dep)
			}
		}
		return out
	}}
	for i := range batch {
		if id, ok := parents.cycle(batch[i].ID); ok {
			return d.refuse(InvalidTransition, id, "it would be its own ancestor")
		}
		if id, ok := depends.cycle(batch[i].ID); ok {
			return d.refuse(InvalidTransition, id, "it would depend on itself, by a cycle")
		}
	}
	return nil
}

// exist checks that a ticket's parent and dependencies are there.
func (d *draft) exist(t *Ticket) error {
	if len(t.DependsOn) > MaxDependencies {
		return d.refuse(InvalidTransition, t.ID, "it depends on %d tickets; at most %d are allowed", len(t.DependsOn), MaxDependencies)
	}
	if _, ok := d.state.tickets.Get(t.Parent); t.Parent != "" && !ok {
		return d.refuse(InvalidTransition, t.ID, "its parent %q does not exist", t.Parent)
	}
	for _, dep := range t.DependsOn {
		if _, ok := d.state.tickets.Get(dep); !ok {
			return d.refuse(InvalidTransition, t.ID, "it depends on %q, which does not exist", dep)
		}
	}
	return nil
}

// acyclic checks the new dependencies of a ticket. It costs what they depend on, near
// and far.
func (d *draft) acyclic(id string) error {
	t, _ := d.state.tickets.Get(id)
	if err := d.exist(t); err != nil {
		return err
	}
	depends := search{next: func(id string) []string {
		t, _ := d.state.tickets.Get(id)
		return t.DependsOn
	}}
	if _, ok := depends.cycle(id); ok {
		return d.refuse(InvalidTransition, id, "it would depend on itself, by a cycle")
	}
	return nil
}

// search looks for cycles depth first. It remembers where it has been, so that walks
// from many beginnings cost no more than one from all.
type search struct {
	next func(id string) []string
	over map[string]bool // false: on the line that is walked; true: nothing of it leads back
}

// cycle is an id that leads back to itself, among all that from leads to.
func (s *search) cycle(from string) (id string, found bool) {
	if s.over == nil {
		s.over = map[string]bool{}
	}
	type step struct {
		id   string
		left []string
	}
	var line []step
	enter := func(id string) {
		s.over[id] = false
		line = append(line, step{id, s.next(id)})
	}
	if !s.over[from] {
		enter(from)
	}
	for len(line) > 0 {
		at := &line[len(line)-1]
		if len(at.left) == 0 {
			s.over[at.id] = true
			line = line[:len(line)-1]
			continue
		}
		id := at.left[0]
		at.left = at.left[1:]
		switch over, seen := s.over[id]; {
		case !seen:
			enter(id)
		case !over:
			return id, true
		}
	}
	return "", false
}
