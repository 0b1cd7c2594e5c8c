package history_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

func on(e *history.Event, op history.Op) *history.Event {
	e.Op = op
	return e
}

func replaced(from, to float64, id, value string) *history.Event {
	return on(wrote(from, to, id, "r", value), history.Replace)
}

// broken is a program that came to no good end.
func broken(e *history.Event) *history.Event {
	e.Status, e.Error = 200, "the program: killed, exit code 137"
	return e
}

// again is an answer that says to ask again.
func again(e *history.Event) *history.Event {
	e.Status, e.Reason, e.Again = 503, "node_away", true
	return e
}

// unknown is an answer that says that the outcome is not known.
func unknown(e *history.Event) *history.Event {
	e.Status, e.Reason = 503, "outcome_unknown"
	return e
}

func stopped(from, to float64, id string) *history.Event {
	return at(from, to, history.Event{Op: history.Stop, Node: "n1", Session: id, Status: 200})
}

func started(from, to float64, id string) *history.Event {
	return at(from, to, history.Event{Op: history.Start, Node: "n1", Session: id, Status: 200})
}

func added(from, to float64, id, value string) *history.Event {
	return at(from, to, history.Event{Op: history.Append, Node: "n1", Session: id, File: "log", Value: value, Status: 200})
}

func tallied(from, to float64, id string, values ...string) *history.Event {
	return at(from, to, history.Event{Op: history.Tally, Node: "n2", Session: id, File: "log", Files: values, Status: 200})
}

func set(from, to float64, id, value string, fresh bool) *history.Event {
	return at(from, to, history.Event{Op: history.Set, Node: "n1", Session: id, Context: "memory", Value: value, Fresh: fresh, Status: 200})
}

func recalled(from, to float64, id, value string, fresh bool) *history.Event {
	return on(set(from, to, id, value, fresh), history.Recall)
}

// noContext is the answer that there is no such context any more.
func noContext(from, to float64, id string) *history.Event {
	e := recalled(from, to, id, "", false)
	e.Status, e.Absent = 404, true
	return e
}

func began(from, to float64, id string) *history.Event {
	return at(from, to, history.Event{Op: history.Begin, Node: "n1", Session: id, Program: "1", Value: "hello", Status: 201})
}

func looked(from, to float64, id, output string, running bool) *history.Event {
	return at(from, to, history.Event{Op: history.Look, Node: "n2", Session: id, Program: "1", Value: output, Running: running, Status: 200})
}

// bounded is a history of a tenant with a bound.
func bounded(bound int, parts ...any) *history.History {
	h := told(parts...)
	h.Run.Bound = bound
	return h
}

// alone is a history of a server by itself.
func alone(parts ...any) *history.History {
	h := told(parts...)
	h.Run.Nodes, h.Run.Lease, h.Run.Settle = []string{"n1"}, 86400*second, second/10
	h.Events = slices.DeleteFunc(h.Events, func(e *history.Event) bool { return e.Client == history.Final && e.Node != "n1" })
	return h
}

func TestGoodPrograms(t *testing.T) {
	for name, h := range map[string]*history.History{
		"replaced":          told(opened(1, 2, "a", ""), replaced(3, 4, "a", "1"), listed(4, 5, "a", "r"), last("a", read(100, 101, "a", "r", "1"))),
		"replaced, killed":  told(fault(history.Crash, "n1", 2.5, 4), opened(1, 2, "a", ""), broken(replaced(3, 4, "a", "1")), listed(4, 5, "a", "r.new"), absent(5, 6, "a", "r"), last("a")),
		"once":              told(opened(1, 2, "a", ""), added(3, 4, "a", "1"), tallied(5, 6, "a", "1"), listed(6, 7, "a", "log"), last("a")),
		"once, unknown":     told(fault(history.CutNodes, "n1", 0.5, 9), opened(1, 2, "a", ""), unknown(added(3, 4, "a", "1")), tallied(5, 6, "a"), tallied(7, 8, "a", "1"), last("a")),
		"once, refused":     told(fault(history.CutNodes, "n1", 0.5, 9), opened(1, 2, "a", ""), again(added(3, 4, "a", "1")), added(5, 6, "a", "2"), tallied(7, 8, "a", "2"), last("a")),
		"a variable":        told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), recalled(5, 6, "a", "1", false), set(6, 7, "a", "2", false), recalled(7, 8, "a", "2", false), last("a")),
		"context, stopped":  told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), stopped(5, 6, "a"), started(6, 7, "a"), noContext(7, 8, "a"), set(8, 9, "a", "2", true), last("a")),
		"context, doubtful": told(fault(history.Crash, "n1", 4.5, 5.5), opened(1, 2, "a", ""), set(3, 4, "a", "1", true), at(5, 6, history.Event{Op: history.Recall, Node: "n1", Session: "a", Context: "memory"}), recalled(7, 8, "a", "", false), last("a")),
		"set late":          told(fault(history.Crash, "n1", 2.5, 3.5), opened(1, 2, "a", ""), set(2, 2.2, "a", "1", true), at(3, 4, history.Event{Op: history.Set, Node: "n1", Session: "a", Context: "memory", Value: "2"}), recalled(5, 6, "a", "2", false), last("a")),
		"a program":         told(opened(1, 2, "a", ""), began(3, 4, "a"), fault(history.Crash, "n1", 5, 6), looked(7, 8, "a", "hello", true), last("a")),
		"program, at once":  told(opened(1, 2, "a", ""), began(3, 4, "a"), looked(4, 5, "a", "", true), last("a")),
		"program, stopped":  told(opened(1, 2, "a", ""), began(3, 4, "a"), stopped(5, 6, "a"), looked(7, 8, "a", "hello", false), started(9, 10, "a"), last("a")),
		"another sandbox":   told(opened(1, 2, "a", ""), ran(3, 4, "a", "x"), stopped(5, 6, "a"), started(6, 7, "a"), ran(7, 8, "a", "y"), last("a")),
		"stopped, no power": told(opened(1, 2, "a", ""), ran(2, 2.5, "a", "x"), stopped(2.5, 2.8, "a"), fault(history.Power, "n1", 3, 4), started(6, 7, "a"), ran(7, 8, "a", "y"), last("a")),
		"refused, stopped":  told(opened(1, 2, "a", ""), stopped(2.5, 2.8, "a"), at(3, 4, history.Event{Op: history.Exec, Node: "n1", Session: "a", Status: 409, Reason: "session_stopped"}), last("a")),
		"refused, full":     bounded(1, opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Open, Node: "n1", Status: 429, Reason: "tenant_quota", Again: true}), last("a")),
		"one after other":   bounded(1, opened(1, 2, "a", ""), ran(3, 4, "a", "x"), stopped(4, 5, "a"), opened(6, 7, "b", ""), ran(8, 9, "b", "y"), last("a"), last("b")),
		"not known":         bounded(1, opened(1, 2, "a", "u/t"), fault(history.EmptyStart, "n1", 3, 9), opened(8, 8.5, "b", "u/t"), ran(10, 11, "a", "x"), ran(10, 11, "b", "y"), last("a"), last("b")),
		"empty, a while":    told(opened(1, 2, "a", ""), fault(history.EmptyStart, "n1", 3, 9), gone(7, 8, "a", "no_such_session"), ran(9.5, 10, "a", "x"), last("a")),
		"empty, all":        told(opened(1, 2, "a", ""), fault(history.EmptyCluster, "", 3, 9), ran(11, 12, "a", "x"), last("a")),
		"lost, all empty":   told(opened(1, 2, "a", ""), fault(history.CutRedis, "n1", 3, 9), gone(8, 9, "a", "node_lost"), fault(history.EmptyCluster, "", 9.1, 10), ran(13, 14, "a", "x"), last("a")),
		"empty, elsewhere":  told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 6), fault(history.EmptyStart, "n2", 4, 5), gone(6.5, 7, "a", "no_such_session"), last("a")),
		"a full disk":       told(opened(1, 2, "a", ""), fault(history.DiskFull, "n1", 3, 9), at(5, 6, history.Event{Op: history.Stop, Node: "n1", Session: "a", Status: 507}), last("a")),
		"by itself":         alone(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 4), ran(4.2, 5, "a", "x"), last("a")),
		"closing, no base":  alone(opened(1, 2, "a", "u/t"), at(2.5, 3.2, history.Event{Op: history.Close, Node: "n1", Session: "a"}), fault(history.DatabaseLoss, "n1", 3, 4), opened(5, 6, "b", "u/t"), ran(7, 8, "a", "x"), ran(7, 8, "b", "y"), last("a"), last("b")),
		"closed, no base":   alone(opened(1, 2, "a", ""), closed(2.2, 2.5, "a"), fault(history.DatabaseLoss, "n1", 3, 4), lost("a", "no_such_session")),
		"by itself, full":   alone(opened(1, 2, "a", ""), fault(history.DiskFull, "n1", 3, 4), unknown(added(3.5, 4.5, "a", "x")), ran(4.2, 5, "a", "x"), last("a")),
	} {
		r := history.Check(h)
		for _, v := range r.Violations {
			t.Errorf("%s: %s", name, v)
		}
	}
}

func TestBadProgramsAreCaught(t *testing.T) {
	for name, tt := range map[string]struct {
		rule string
		h    *history.History
	}{
		"torn":               {"reads", told(fault(history.Crash, "n1", 4.5, 5.5), opened(1, 2, "a", ""), replaced(3, 4, "a", "1"), broken(replaced(5, 6, "a", "2")), read(7, 8, "a", "r", "torn: 2"), last("a", read(100, 101, "a", "r", "1")))},
		"emptied":            {"reads", told(opened(1, 2, "a", ""), replaced(3, 4, "a", "1"), read(7, 8, "a", "r", "torn: \"\" of 0 bytes"), last("a", read(100, 101, "a", "r", "1")))},
		"a new file of none": {"reads", told(opened(1, 2, "a", ""), listed(4, 5, "a", "r.new"), last("a"))},
		"ran twice":          {"once", told(opened(1, 2, "a", ""), added(3, 4, "a", "1"), tallied(5, 6, "a", "1", "1"), last("a"))},
		"unknown, twice":     {"once", told(opened(1, 2, "a", ""), unknown(added(3, 4, "a", "1")), tallied(5, 6, "a", "1", "1"), last("a"))},
		"refused, and ran":   {"once", told(opened(1, 2, "a", ""), again(added(3, 4, "a", "1")), tallied(5, 6, "a", "1"), last("a"))},
		"line lost":          {"once", told(opened(1, 2, "a", ""), added(3, 4, "a", "1"), tallied(5, 6, "a"), last("a"))},
		"log lost":           {"once", told(opened(1, 2, "a", ""), added(3, 4, "a", "1"), on(absent(5, 6, "a", "log"), history.Tally), last("a"))},
		"a line of none":     {"once", told(opened(1, 2, "a", ""), tallied(5, 6, "a", "9"), last("a"))},
		"a line too early":   {"once", told(opened(1, 2, "a", ""), tallied(3, 4, "a", "1"), added(5, 6, "a", "1"), last("a"))},
		"an old value":       {"contexts", told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), set(5, 6, "a", "2", false), recalled(7, 8, "a", "1", false), last("a"))},
		"gone, not said":     {"contexts", told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), recalled(7, 8, "a", "", false), last("a"))},
		"value of none":      {"contexts", told(opened(1, 2, "a", ""), recalled(7, 8, "a", "9", true), last("a"))},
		"after its end":      {"contexts", told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), stopped(5, 6, "a"), started(6, 7, "a"), recalled(7, 8, "a", "1", true), last("a"))},
		"fresh for nothing":  {"contexts", told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), fault(history.Crash, "n1", 5, 6), set(7, 8, "a", "2", true), last("a"))},
		"closed for nothing": {"contexts", told(opened(1, 2, "a", ""), set(3, 4, "a", "1", true), fault(history.Crash, "n1", 5, 6), noContext(7, 8, "a"), last("a"))},
		"program ended":      {"programs", told(opened(1, 2, "a", ""), began(3, 4, "a"), fault(history.Crash, "n1", 5, 6), looked(7, 8, "a", "hello", false), last("a"))},
		"program forgotten": {"programs", told(opened(1, 2, "a", ""), began(3, 4, "a"), fault(history.Crash, "n1", 5, 6), func() *history.Event {
			e := looked(7, 8, "a", "", false)
			e.Absent = true
			return e
		}(), last("a"))},
		"output gone":       {"programs", told(opened(1, 2, "a", ""), began(3, 4, "a"), looked(20, 21, "a", "", true), last("a"))},
		"output of another": {"programs", told(opened(1, 2, "a", ""), began(3, 4, "a"), looked(4, 5, "a", "hell", true), last("a"))},
		"second sandbox":    {"sandbox", told(opened(1, 2, "a", ""), ran(3, 4, "a", "x"), ran(5, 6, "a", "y"), stopped(7, 8, "a"), started(9, 10, "a"), last("a"))},
		"too many":          {"bound", bounded(1, opened(1, 2, "a", ""), opened(3, 4, "b", ""), ran(5, 6, "a", "x"), ran(5, 6, "b", "y"), last("a"), last("b"))},
		"too many, empty":   {"bound", bounded(1, opened(1, 2, "a", ""), fault(history.EmptyStart, "n1", 2.5, 3), opened(6, 7, "b", ""), ran(8, 9, "a", "x"), ran(8, 9, "b", "y"), last("a"), last("b"))},
		"too many, all":     {"bound", bounded(1, opened(1, 2, "a", ""), fault(history.EmptyCluster, "", 2.5, 3), opened(6, 7, "b", ""), ran(8, 9, "a", "x"), ran(8, 9, "b", "y"), last("a"), last("b"))},
		"two, no base":      {"holder", alone(opened(1, 2, "a", "u/t"), fault(history.DatabaseLoss, "n1", 3, 4), opened(5, 6, "b", "u/t"), ran(7, 8, "a", "x"), ran(7, 8, "b", "y"), last("a"), last("b"))},
		"two, all knew":     {"holder", told(opened(1, 2, "a", "u/t"), fault(history.EmptyStart, "n1", 2.5, 3), opened(6, 7, "b", "u/t"), ran(8, 9, "a", "x"), ran(8, 9, "b", "y"), last("a"), last("b"))},
		"full for nothing":  {"answers", told(opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Open, Node: "n1", Status: 429, Reason: "tenant_quota"}), last("a"))},
		"not stopped":       {"answers", told(opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Exec, Node: "n1", Session: "a", Status: 409, Reason: "session_stopped"}), last("a"))},
		"no disk is full":   {"answers", told(fault(history.CutNodes, "n1", 0.5, 0.9), opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Stop, Node: "n1", Session: "a", Status: 507}), last("a"))},
		"lost, one empty":   {"finality", told(opened(1, 2, "a", ""), fault(history.CutRedis, "n1", 3, 9), gone(8, 9, "a", "node_lost"), fault(history.EmptyStart, "n1", 9.1, 10), ran(13, 14, "a", "x"), last("a"))},
		"removed, empty":    {"end", told(opened(1, 2, "a", ""), fault(history.EmptyStart, "n1", 3, 9), lost("a", "no_such_session"))},
		"lost, empty":       {"end", told(opened(1, 2, "a", ""), fault(history.EmptyStart, "n1", 3, 9), lost("a", "node_lost"))},
		"all removed":       {"end", told(opened(1, 2, "a", ""), stopped(2, 2.5, "a"), fault(history.EmptyCluster, "", 3, 4), lost("a", "no_such_session"))},
		"stopped, lost":     {"end", told(opened(1, 2, "a", ""), stopped(2.2, 2.5, "a"), fault(history.Power, "n1", 3, 3.5), lost("a", "node_lost"))},
		"lost by a disk":    {"end", told(opened(1, 2, "a", ""), fault(history.DiskFull, "n1", 3, 20), lost("a", "node_lost"))},
		"without database":  {"end", alone(opened(1, 2, "a", ""), fault(history.DatabaseLoss, "n1", 3, 4), lost("a", "no_such_session"))},
		"does not recover":  {"recovery", alone(opened(1, 2, "a", ""), fault(history.DiskFull, "n1", 3, 4), at(5, 6, history.Event{Op: history.Exec, Node: "n1", Session: "a", Status: 503}), last("a"))},
	} {
		r := history.Check(tt.h)
		if got := slices.Collect(maps.Keys(r.Broken)); !slices.Contains(got, tt.rule) {
			t.Errorf("%s: breaks %q, want %s", name, got, tt.rule)
		}
	}
}
