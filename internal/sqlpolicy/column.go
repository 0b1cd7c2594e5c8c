package sqlpolicy

// column finds out which column is meant, and refuses one that only what is not
// granted has. A name that nothing has is left to the engine, which says so better.
func (j *judge) column(names []string, s *scope) {
	if len(names) == 0 {
		return
	}
	if len(names) > 2 {
		if r := s.qualified(names[0], names[1]); r != nil {
			j.of(r, names[2])
			return
		}
	}
	if len(names) > 1 {
		if from := s.named(names[0]); len(from) == 1 {
			j.of(from[0], names[1])
			return
		}
	}
	j.bareColumn(names[0], s)
}

// qualified returns the table of a dataset that FROM brought under its own name.
func (s *scope) qualified(dataset, name string) *relation {
	for ; s != nil; s = s.outer {
		for _, r := range s.from {
			if r.name == lower(name) && r.dataset != "" && r.dataset == lower(dataset) {
				return r
			}
		}
	}
	return nil
}

// of looks a column up in one relation.
func (j *judge) of(r *relation, name string) {
	if from, ok := r.columns[lower(name)]; ok {
		note(from)
	} else if t, ok := r.hidden(lower(name)); ok && !r.open {
		j.denied(name, t)
	}
}

// bareColumn looks a column up in all relations around it, from the inside out.
func (j *judge) bareColumn(name string, s *scope) {
	var hidden *Table
	for at := s; at != nil && j.spend(1+len(at.from)); at = at.outer {
		if at.names[lower(name)] {
			// The engine prefers a column of FROM to a name that the query makes.
			j.noteIn(at.from, name)
			return
		}
		if j.noteIn(at.from, name) {
			return
		}
		for _, r := range at.from {
			if r.open || r.name == lower(name) {
				return
			}
			if t, ok := r.hidden(lower(name)); ok && hidden == nil {
				hidden = &t
			}
		}
	}
	if hidden != nil && !noColumns[lower(name)] {
		j.denied(name, *hidden)
	}
}

// noColumns are names that mean something where no column has them.
var noColumns = set(`current_catalog current_date current_role current_schema current_time current_timestamp current_user localtime localtimestamp
	rowid session_user user`)

// noteIn notes the column in the first relation that has it.
func (j *judge) noteIn(from []*relation, name string) bool {
	for _, r := range from {
		if c, ok := r.columns[lower(name)]; ok {
			note(c)
			return true
		}
	}
	return false
}

// star notes what a star stands for.
func (j *judge) star(o object, s *scope) {
	hidden := excluded(o)
	for _, r := range s.named(text(o, "relation_name")) {
		if !j.spend(len(r.columns)) {
			return
		}
		for name, from := range r.columns {
			if !hidden[name] {
				note(from)
			}
		}
	}
}

func note(from origin) {
	if from.use != nil {
		from.use.columns[from.column] = true
	}
}

func (j *judge) denied(name string, t Table) {
	j.refuse(RuleColumn, name, "the column %s of %s is not granted to this key", cut(name), t)
}
