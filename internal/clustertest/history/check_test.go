package history_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

const second = int64(1e9)

// at sets the time of an event, in seconds.
func at(from, to float64, e history.Event) *history.Event {
	e.Start, e.End = int64(from*float64(second)), int64(to*float64(second))
	return &e
}

func opened(from, to float64, id, key string) *history.Event {
	return at(from, to, history.Event{Op: history.Open, Node: "n1", Session: id, Key: key, Status: 201, Created: true, Home: "n1"})
}

func found(from, to float64, id, key string) *history.Event {
	return at(from, to, history.Event{Op: history.Open, Node: "n2", Session: id, Key: key, Status: 200, Home: "n1"})
}

func wrote(from, to float64, id, file, value string) *history.Event {
	return at(from, to, history.Event{Op: history.Write, Node: "n1", Session: id, File: file, Value: value, Status: 204})
}

func unsure(from, to float64, id, file, value string) *history.Event {
	return at(from, to, history.Event{Op: history.Write, Node: "n1", Session: id, File: file, Value: value})
}

func read(from, to float64, id, file, value string) *history.Event {
	return at(from, to, history.Event{Op: history.Read, Node: "n2", Session: id, File: file, Value: value, Status: 200})
}

func absent(from, to float64, id, file string) *history.Event {
	return at(from, to, history.Event{Op: history.Read, Node: "n2", Session: id, File: file, Status: 404, Code: "not_found", Absent: true})
}

func ran(from, to float64, id, token string) *history.Event {
	return at(from, to, history.Event{Op: history.Exec, Node: "n2", Session: id, Status: 200, Token: token})
}

func failed(from, to float64, id string) *history.Event {
	return at(from, to, history.Event{Op: history.Exec, Node: "n2", Session: id, Status: 200, Error: "the program: killed, exit code 137"})
}

func listed(from, to float64, id string, files ...string) *history.Event {
	return at(from, to, history.Event{Op: history.List, Node: "n2", Session: id, Status: 200, Files: files})
}

func gone(from, to float64, id, reason string) *history.Event {
	return at(from, to, history.Event{Op: history.Get, Node: "n2", Session: id, Status: 404, Code: "not_found", Reason: reason})
}

func away(from, to float64, id string) *history.Event {
	return at(from, to, history.Event{Op: history.Get, Node: "n2", Session: id, Status: 503, Reason: "node_away"})
}

func closed(from, to float64, id string) *history.Event {
	return at(from, to, history.Event{Op: history.Close, Node: "n1", Session: id, Status: 200})
}

// fault takes a tenth of a second to come and to go.
func fault(op history.Op, node string, from, to float64) *history.Event {
	e := at(from, to, history.Event{Op: op, Node: node, Client: "nemesis"})
	e.Applied, e.Healing = e.Start+second/10, e.End-second/10
	return e
}

// last asks both nodes for a session that is there, at 100 s.
func last(id string, read ...*history.Event) []*history.Event {
	var all []*history.Event
	for _, node := range []string{"n1", "n2"} {
		all = append(all, at(100, 100.1, history.Event{Client: history.Final, Op: history.Get, Node: node, Session: id, Status: 200, Home: "n1"}))
	}
	for _, e := range read {
		e.Client = history.Final
		all = append(all, e)
	}
	return all
}

// lost asks both for one that is not.
func lost(id, reason string) []*history.Event {
	var all []*history.Event
	for _, node := range []string{"n1", "n2"} {
		e := gone(100, 100.1, id, reason)
		e.Client, e.Node = history.Final, node
		all = append(all, e)
	}
	return all
}

func told(parts ...any) *history.History {
	h := &history.History{Run: history.Run{Nodes: []string{"n1", "n2"}, Lease: 3 * second, Settle: 3 * second / 2, Grace: 60 * second}}
	for _, p := range parts {
		switch p := p.(type) {
		case *history.Event:
			h.Events = append(h.Events, p)
		case []*history.Event:
			h.Events = append(h.Events, p...)
		}
	}
	slices.SortStableFunc(h.Events, func(a, b *history.Event) int { return int((a.Start - b.Start) / 1e6) })
	for i, e := range h.Events {
		e.Number = i + 1
	}
	return h
}

func TestGoodHistoriesPass(t *testing.T) {
	for name, h := range map[string]*history.History{
		"a life":           told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), read(5, 6, "a", "f", "1"), ran(6, 7, "a", "x"), ran(7, 8, "a", "x"), listed(8, 9, "a", "f"), last("a", read(100, 101, "a", "f", "1"))),
		"overlap":          told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), wrote(5, 9, "a", "f", "2"), read(6, 7, "a", "f", "2"), read(6, 6.5, "a", "f", "1"), last("a", read(100, 101, "a", "f", "2"))),
		"a draft":          told(opened(1, 2, "a", ""), wrote(3, 6, "a", "f", "1"), listed(5, 5.5, "a", ".cove-draft-1"), last("a", read(100, 101, "a", "f", "1"))),
		"before the write": told(opened(1, 2, "a", ""), absent(2, 3.5, "a", "f"), wrote(3, 4, "a", "f", "1"), last("a", read(100, 101, "a", "f", "1"))),
		"unsure, not":      told(fault(history.CutNodes, "n1", 0.5, 0.9), opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), unsure(5, 6, "a", "f", "2"), read(7, 8, "a", "f", "1"), last("a", read(100, 101, "a", "f", "1"))),
		"unsure, late":     told(fault(history.CutNodes, "n1", 0.5, 0.9), opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), unsure(5, 6, "a", "f", "2"), read(7, 8, "a", "f", "1"), read(20, 21, "a", "f", "2"), last("a", read(100, 101, "a", "f", "2"))),
		"closed":           told(opened(1, 2, "a", ""), closed(3, 4, "a"), read(3.5, 5, "a", "f", ""), gone(5, 6, "a", "session_closed"), lost("a", "session_closed")),
		"lost":             told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), gone(8, 9, "a", "node_lost"), lost("a", "node_lost")),
		"settling":         told(opened(1, 2, "a", ""), fault(history.RedisLoss, "", 3, 4), gone(5, 5.1, "a", "no_such_session"), ran(6, 7, "a", "x"), last("a")),
		"one after other":  told(opened(1, 2, "a", "u/t"), fault(history.Power, "n1", 3, 9), ran(3, 4, "a", "x"), opened(8, 9, "b", "u/t"), found(10, 11, "b", "u/t"), ran(12, 13, "b", "y"), lost("a", "node_lost"), last("b")),
		"within its lease": told(opened(1, 2, "a", ""), fault(history.CutRedis, "n1", 3, 9), func() *history.Event {
			e := read(5, 6, "a", "f", "")
			e.Node, e.Status, e.Absent = "n1", 404, true
			return e
		}(), last("a")),
		"power":            told(opened(1, 2, "a", ""), fault(history.Power, "n1", 3, 3.5), lost("a", "node_lost")),
		"program, closed":  told(opened(1, 2, "a", ""), failed(3, 4, "a"), closed(3.5, 5, "a"), lost("a", "session_closed")),
		"program, frozen":  told(opened(1, 2, "a", ""), fault(history.Freeze, "n1", 3, 4), failed(3, 5, "a"), last("a")),
		"power, meanwhile": told(opened(1, 4, "a", ""), fault(history.Power, "n1", 3, 4.5), ran(5, 6, "a", "x"), last("a")),
		"another's power":  told(opened(1, 2, "a", ""), fault(history.Power, "n2", 3, 4.5), ran(5, 6, "a", "x"), last("a")),
		"two short ones":   told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 4), fault(history.CutRedis, "n1", 5, 6), lost("a", "node_lost")),
		"left unsaid":      told(opened(1, 2, "a", ""), fault(history.CutRedis, "n1", 3, 4), fault(history.Leave, "n1", 3.5, 9), lost("a", "node_lost")),
		"left for long":    told(opened(1, 2, "a", ""), fault(history.Leave, "n1", 3, 65), lost("a", "node_lost")),
		"still down":       told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), gone(6.5, 7, "a", "node_lost"), lost("a", "node_lost")),
		"closed, forgot":   told(opened(1, 2, "a", ""), closed(3, 4, "a"), fault(history.RedisLoss, "", 5, 6), lost("a", "no_such_session")),
		"lost, forgot":     told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), fault(history.RedisLoss, "", 20, 21), lost("a", "no_such_session")),
		"refused":          told(fault(history.CutNodes, "n1", 0.5, 9), opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Get, Node: "n1", Session: "a", Status: 503, Reason: "node_away"}), last("a")),
	} {
		r := history.Check(h)
		for _, v := range r.Violations {
			t.Errorf("%s: %s", name, v)
		}
	}
}

func TestBadHistoriesAreCaught(t *testing.T) {
	through := func(node string, e *history.Event) *history.Event { e.Node = node; return e }
	status := func(from float64, n int, reason string) *history.Event {
		return at(from, from+1, history.Event{Op: history.Get, Node: "n1", Session: "a", Status: n, Reason: reason})
	}
	for name, tt := range map[string]struct {
		rule string
		h    *history.History
	}{
		"stale":            {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), wrote(5, 6, "a", "f", "2"), read(7, 8, "a", "f", "1"), last("a", read(100, 101, "a", "f", "2")))},
		"lost write":       {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), absent(5, 6, "a", "f"), last("a", read(100, 101, "a", "f", "1")))},
		"came back":        {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), unsure(5, 6, "a", "f", "2"), read(7, 8, "a", "f", "2"), read(9, 10, "a", "f", "1"), last("a", read(100, 101, "a", "f", "1")))},
		"never written":    {"reads", told(opened(1, 2, "a", ""), read(7, 8, "a", "f", "9"), last("a"))},
		"before written":   {"reads", told(opened(1, 2, "a", ""), read(2, 2.5, "a", "f", "1"), wrote(3, 4, "a", "f", "1"), last("a", read(100, 101, "a", "f", "1")))},
		"another's":        {"reads", told(opened(1, 2, "a", ""), opened(1, 2, "b", ""), wrote(3, 4, "b", "f", "of b"), read(7, 8, "a", "f", "of b"), last("a"), last("b", read(100, 101, "b", "f", "of b")))},
		"not listed":       {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), listed(5, 6, "a"), last("a", read(100, 101, "a", "f", "1")))},
		"an old draft":     {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), listed(5, 6, "a", "f", ".cove-draft-1"), last("a", read(100, 101, "a", "f", "1")))},
		"listed, not his":  {"reads", told(opened(1, 2, "a", ""), listed(5, 6, "a", "g"), last("a"))},
		"by a program":     {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), at(5, 6, history.Event{Op: history.Exec, Node: "n1", Session: "a", File: "f", Status: 200, Absent: true}), last("a", read(100, 101, "a", "f", "1")))},
		"after its loss":   {"finality", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), gone(4, 5, "a", "node_lost"), ran(6, 7, "a", "x"), lost("a", "node_lost"))},
		"after its close":  {"finality", told(opened(1, 2, "a", ""), closed(3, 4, "a"), ran(6, 7, "a", "x"), lost("a", "session_closed"))},
		"found again":      {"finality", told(opened(1, 2, "a", "u/t"), closed(3, 4, "a"), found(6, 7, "a", "u/t"), lost("a", "session_closed"))},
		"unknown, alive":   {"finality", told(opened(1, 2, "a", ""), fault(history.RedisLoss, "", 3, 4), gone(6, 7, "a", "no_such_session"), ran(8, 9, "a", "x"), last("a"))},
		"two holders":      {"holder", told(opened(1, 2, "a", "u/t"), opened(3, 4, "b", "u/t"), ran(5, 6, "a", "x"), ran(5, 6, "b", "y"), last("a"), last("b"))},
		"older answers":    {"holder", told(opened(1, 2, "a", "u/t"), opened(3, 4, "b", "u/t"), ran(5, 6, "a", "x"), closed(7, 8, "a"), last("b"), lost("a", "session_closed"))},
		"second sandbox":   {"sandbox", told(opened(1, 2, "a", ""), ran(3, 4, "a", "x"), ran(5, 6, "a", "y"), last("a"))},
		"second node":      {"sandbox", told(opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Get, Node: "n1", Session: "a", Status: 200, Home: "n2"}), last("a"))},
		"created twice":    {"sandbox", told(opened(1, 2, "a", ""), opened(3, 4, "a", ""), last("a"))},
		"another session":  {"sandbox", told(opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.Exec, Node: "n1", Session: "a", Status: 200, Other: "b"}), last("a"))},
		"without a lease":  {"lease", told(opened(1, 2, "a", ""), fault(history.CutRedis, "n1", 3, 9), through("n1", ran(7, 8, "a", "x")), last("a"))},
		"without Redis":    {"lease", told(opened(1, 2, "a", ""), fault(history.RedisRestart, "", 3, 9), through("n2", ran(7, 8, "a", "x")), last("a"))},
		"made unwritten":   {"lease", told(fault(history.CutRedis, "n1", 3, 9), opened(4, 5, "a", ""), last("a"))},
		"loss untold":      {"loss", told(opened(1, 2, "a", ""), fault(history.Freeze, "n1", 3, 20), away(18, 19, "a"), lost("a", "node_lost"))},
		"without power":    {"loss", told(opened(1, 2, "a", ""), fault(history.Power, "n1", 3, 4.5), status(5, 200, ""), lost("a", "node_lost"))},
		"found, no power":  {"loss", told(opened(1, 2, "a", "u/t"), fault(history.Power, "n1", 3, 4.5), found(4, 5, "a", "u/t"), lost("a", "node_lost"))},
		"never told of":    {"loss", told(found(1, 2, "a", "u/t"), fault(history.Power, "n1", 3, 4.5), absent(5, 6, "a", "f"))},
		"not yet broken":   {"answers", told(opened(1, 2, "a", ""), away(3, 4, "a"), fault(history.CutNodes, "n1", 8, 9), last("a"))},
		"our bug":          {"answers", told(opened(1, 2, "a", ""), status(3, 500, ""), last("a"))},
		"no key":           {"answers", told(opened(1, 2, "a", ""), status(3, 401, ""), last("a"))},
		"no reason":        {"answers", told(opened(1, 2, "a", ""), status(3, 404, ""), last("a"))},
		"elsewhere":        {"answers", told(opened(1, 2, "a", ""), status(3, 409, "elsewhere"), last("a"))},
		"failed program":   {"answers", told(opened(1, 2, "a", ""), failed(3, 4, "a"), closed(5, 6, "a"), lost("a", "session_closed"))},
		"failed elsewhere": {"answers", told(opened(1, 2, "a", ""), fault(history.Freeze, "n2", 2.5, 5), failed(3, 4, "a"), last("a"))},
		"not understood":   {"answers", told(opened(1, 2, "a", ""), at(3, 4, history.Event{Op: history.List, Node: "n1", Session: "a", Status: 200, Error: "no JSON"}), closed(3, 4, "a"), lost("a", "session_closed"))},
		"not asked":        {"end", told(opened(1, 2, "a", ""))},
		"half gone":        {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), last("a")[:1], lost("a", "node_lost")[1:])},
		"away for ever":    {"end", told(opened(1, 2, "a", ""), last("a"), at(101, 102, history.Event{Client: history.Final, Op: history.Get, Node: "n1", Session: "a", Status: 503}))},
		"silent":           {"end", told(opened(1, 2, "a", ""), last("a"), at(101, 102, history.Event{Client: history.Final, Op: history.Get, Node: "n1", Session: "a"}))},
		"not read":         {"end", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), last("a"))},
		"files gone":       {"reads", told(opened(1, 2, "a", ""), wrote(3, 4, "a", "f", "1"), last("a", absent(100, 101, "a", "f")))},
		"lost for nothing": {"end", told(opened(1, 2, "a", ""), fault(history.CutNodes, "n1", 3, 9), fault(history.Crash, "n2", 3, 9), lost("a", "node_lost"))},
		"a short crash":    {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 3.5), lost("a", "node_lost"))},
		"a short cut":      {"end", told(opened(1, 2, "a", ""), fault(history.CutRedis, "n1", 3, 4.5), lost("a", "node_lost"))},
		"apart by a lease": {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 4), fault(history.Crash, "n1", 6, 7), lost("a", "node_lost"))},
		"Redis was away":   {"end", told(opened(1, 2, "a", ""), fault(history.RedisRestart, "", 3, 9), lost("a", "node_lost"))},
		"Redis was empty":  {"end", told(opened(1, 2, "a", ""), fault(history.RedisLoss, "", 3, 9), lost("a", "node_lost"))},
		"never put back":   {"end", told(opened(1, 2, "a", ""), fault(history.RedisLoss, "", 3, 4), lost("a", "no_such_session"))},
		"left in order":    {"end", told(opened(1, 2, "a", ""), fault(history.Leave, "n1", 3, 9), lost("a", "node_lost"))},
		"left twice":       {"end", told(opened(1, 2, "a", ""), fault(history.Leave, "n1", 3, 9), fault(history.Leave, "n1", 10, 12), lost("a", "node_lost"))},
		"lost too early":   {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), gone(3.5, 4, "a", "node_lost"), lost("a", "node_lost"))},
		"lost too late":    {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), ran(12, 13, "a", "x"), lost("a", "node_lost"))},
		"before its time":  {"end", told(fault(history.Power, "n1", 3, 9), opened(10, 11, "a", ""), lost("a", "node_lost"))},
		"closed by nobody": {"end", told(opened(1, 2, "a", ""), lost("a", "session_closed"))},
		"forgotten":        {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), lost("a", "no_such_session"))},
		"expired":          {"end", told(opened(1, 2, "a", ""), fault(history.Crash, "n1", 3, 9), lost("a", "session_expired"))},
	} {
		r := history.Check(tt.h)
		if got := slices.Collect(maps.Keys(r.Broken)); !slices.Contains(got, tt.rule) {
			t.Errorf("%s: breaks %q, want %s", name, got, tt.rule)
		}
	}
}

func TestHistoryIsWrittenAndRead(t *testing.T) {
	var file bytes.Buffer
	w := history.NewWriter(&file, history.Run{Seed: 7, Nodes: []string{"n1"}, Lease: 3 * second})
	open := &history.Event{Client: "c1", Op: history.Open, Node: "n1", Key: "u/t"}
	w.Call(open)
	pending := &history.Event{Client: "c2", Op: history.Write, Node: "n1", Session: "a", File: "f", Value: "1"}
	w.Call(pending)
	open.Session, open.Status, open.Created = "a", 201, true
	w.Return(open)
	if err := w.Err(); err != nil {
		t.Fatal(err)
	}
	file.WriteString(`{"kind":"call","num`) // the run was killed
	h, err := history.Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	if h.Run.Seed != 7 || len(h.Events) != 2 {
		t.Fatalf("read %+v with %d events", h.Run, len(h.Events))
	}
	if e := h.Events[0]; !e.Served() || e.Session != "a" || e.Start < 1 || e.End < e.Start {
		t.Errorf("the first is %s", e)
	}
	if e := h.Events[1]; e.End != history.Never || !e.Maybe() || e.Done() {
		t.Errorf("the second is %s", e)
	}
}

func TestLoadRefuses(t *testing.T) {
	lines := func(all ...any) string {
		var b strings.Builder
		for _, l := range all {
			text, _ := json.Marshal(l)
			b.Write(append(text, '\n'))
		}
		return b.String()
	}
	type m = map[string]any
	call := m{"kind": "call", "number": 1, "op": "get", "start": 5}
	for name, text := range map[string]string{
		"no JSON":     "x\n{}\n",
		"no kind":     lines(m{}),
		"no call":     lines(m{"kind": "return", "number": 1}),
		"a gap":       lines(m{"kind": "call", "number": 2}),
		"another":     lines(call, m{"kind": "return", "number": 1, "op": "list", "start": 5, "end": 6}),
		"goes back":   lines(call, m{"kind": "return", "number": 1, "op": "get", "start": 5, "end": 4}),
		"a long line": strings.Repeat("x", 2<<20),
	} {
		if _, err := history.Load(strings.NewReader(text)); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

func TestEmptyHistoryLacks(t *testing.T) {
	least := history.Least{Done: map[history.Op]int{history.Write: 1}, Faults: map[history.Op]int{history.Crash: 1}, Created: 1, Lost: 1, Kept: 1, Tokens: 1}
	if got := history.Check(&history.History{}).Counts.Lacks(least); len(got) != 6 {
		t.Errorf("an empty history lacks %q", got)
	}
	full := told(opened(1, 2, "a", ""), opened(1, 2, "b", ""), wrote(1, 2, "a", "f", "1"), ran(2, 3, "a", "x"), fault(history.Crash, "n1", 3, 9), lost("b", "node_lost"), last("a"))
	if got := history.Check(full).Counts.Lacks(least); len(got) != 0 {
		t.Errorf("a full one lacks %q", got)
	}
	if text := history.Check(full).Counts.String(); !strings.Contains(text, "2 sessions created, 1 lost, 1 there") {
		t.Errorf("the counts are %s", text)
	}
}
