package history

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is a rule that a history breaks.
type Violation struct {
	Rule   string
	Text   string
	Events []*Event // that show it
}

// String is the violation for people, with the numbers of the lines to look at.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Rule, v.Text)
	for _, e := range v.Events {
		fmt.Fprintf(&b, "\n    %s", e)
	}
	return b.String()
}

// String is the event on a line.
func (e *Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s %s at %s [%.3fs", e.Number, e.Client, e.Op, e.Node, float64(e.Start)/1e9)
	if e.End == Never {
		b.WriteString(" …]")
	} else {
		fmt.Fprintf(&b, " %.3fs]", float64(e.End)/1e9)
	}
	for _, field := range []struct{ name, value string }{
		{"peer", e.Peer}, {"session", e.Session}, {"key", e.Key}, {"file", e.File}, {"value", e.Value}, {"context", e.Context}, {"program", e.Program}, {"state", e.State}, {"reason", e.Reason}, {"home", e.Home}, {"token", e.Token}, {"error", e.Error},
	} {
		if field.value != "" {
			fmt.Fprintf(&b, " %s=%s", field.name, field.value)
		}
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " status=%d", e.Status)
	}
	if e.Absent {
		b.WriteString(" absent")
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"created", e.Created}, {"fresh", e.Fresh}, {"running", e.Running}, {"again", e.Again}} {
		if flag.set {
			b.WriteString(" " + flag.name)
		}
	}
	return b.String()
}

// Report is what a check found.
type Report struct {
	Counts     Counts
	Violations []Violation // of each rule no more than a few
	Broken     map[string]int
}

// enough is how many violations of one rule anybody wants to read.
const enough = 8

// Check holds a history against the rules:
//
//   - reads: a read, by whatever way, returns what was last written to that file of
//     that session, or what was being written, and a list has every file that was there.
//   - finality: a session of which the cluster said that it is gone does not answer
//     any more, through any node.
//   - once: what is done once is done once: a line that a program added to the log of a
//     session is there and stays there if that was answered, and is not there if the
//     answer said to ask again.
//   - contexts: a variable has the value that it was last given, or the answer says that
//     its interpreter was started anew, which only a stop, a lost answer or a lost
//     database brings about.
//   - programs: a background program runs on, with its output, until its session stops.
//   - bound: a tenant never has more sandboxes than it may. Neither this nor the rule of
//     holders speaks of sessions that no node could know of: Redis lost them, and their
//     node was away.
//   - recovery: a server by itself that nothing is done to does what it is asked.
//   - holder: one session at a time is that of a user and thread.
//   - sandbox: one sandbox, of one node, answers for a session.
//   - lease: a node that is cut off from Redis answers for none of its sessions once its lease
//     is over, and makes none.
//   - loss: once the lease of a node that is down is over, whoever can reach Redis says
//     that its sessions are gone; and none answers that ran when its node lost power,
//     however short that was.
//   - answers: the cluster never says that it is broken, or that a good key is bad, and
//     does what it is asked while nothing was broken yet.
//   - end: when all is healed, a session answers through every node, or is gone for a
//     reason that is true, and every node says so. What a lease outlives costs no
//     session, and neither does Redis alone.
func Check(h *History) *Report {
	c := &checker{History: h, report: &Report{Counts: count(h), Broken: map[string]int{}}}
	c.index()
	for _, rule := range []func(){c.reads, c.lists, c.once, c.contexts, c.programs, c.bounds, c.recovery, c.finality, c.holders, c.sandboxes, c.leases, c.losses, c.unpowered, c.answers, c.ends} {
		rule()
	}
	return c.report
}

type checker struct {
	*History

	report   *Report
	sessions map[string]*session
	order    []string // of sessions, as they were first heard of
	faults   []*Event
}

// session is what a history has about one.
type session struct {
	id     string
	opened *Event // that made it; nil: nobody heard of that
	home   string
	events []*Event
}

func (c *checker) index() {
	c.sessions = map[string]*session{}
	for _, e := range c.Events {
		if e.Op.IsFault() {
			c.faults = append(c.faults, e)
			continue
		}
		if e.Session == "" {
			continue
		}
		s := c.sessions[e.Session]
		if s == nil {
			s = &session{id: e.Session}
			c.sessions[e.Session] = s
			c.order = append(c.order, e.Session)
		}
		s.events = append(s.events, e)
		if s.home == "" {
			s.home = e.Home
		}
		if e.Op == Open && e.Created && s.opened == nil {
			s.opened = e
		}
	}
}

// each calls f for every session in the order of the history.
func (c *checker) each(f func(*session)) {
	for _, id := range c.order {
		f(c.sessions[id])
	}
}

func (c *checker) breaks(rule string, events []*Event, format string, args ...any) {
	c.report.Broken[rule]++
	if c.report.Broken[rule] <= enough {
		c.report.Violations = append(c.report.Violations, Violation{Rule: rule, Text: fmt.Sprintf(format, args...), Events: slices.Clone(events)})
	}
}
