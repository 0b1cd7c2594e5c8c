package platformtest

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cove-sandbox/cove"
)

// methods returns the verb of every method of every part of [cove.Platform],
// found by reflection: Sessions.Open is session.open.
func methods() []cove.Verb {
	singular := map[string]string{
		"Sessions": "session", "Processes": "process", "Files": "file", "Contexts": "context",
		"Ports": "port", "Trials": "trial", "Snapshots": "snapshot", "Runs": "run",
		"Datasets": "dataset", "Chats": "chat", "Links": "link", "Templates": "template",
		"Volumes": "volume", "Nodes": "node",
	}
	var verbs []cove.Verb
	platform := reflect.TypeFor[cove.Platform]()
	for part := range platform.Methods() {
		noun, ok := singular[part.Name]
		if !ok {
			noun = snake(part.Name)
		}
		for method := range part.Type.Out(0).Methods() {
			verbs = append(verbs, cove.Verb(noun+"."+snake(method.Name)))
		}
	}
	slices.Sort(verbs)
	return verbs
}

func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// checkCoverage fails for a method of any part that never worked while the
// whole suite ran, and for one that the walks do not know.
func (s *suite) checkCoverage(t *testing.T) {
	table, worked := calls(), s.seen.all()
	for _, v := range methods() {
		if _, ok := table[v]; !ok {
			t.Errorf("%s has no row in calls: the walks over scopes and tenants miss it", v)
		}
		if !worked[v] && !s.excused(t, v) {
			t.Errorf("%s never worked in the whole suite: write a case for it", v)
		}
	}
	for v := range table {
		if !slices.Contains(methods(), v) {
			t.Errorf("calls has a row for %s, which no part of Platform has", v)
		}
	}
}

// excused says whether this platform cannot do v at all.
func (s *suite) excused(t *testing.T, v cove.Verb) bool {
	r := s.start(t, Options{})
	extras, powers := r.h.Extras(), r.capabilities().Powers
	lacks := func(p cove.Power) bool { return !slices.Contains(powers, p) }
	switch noun, _, _ := strings.Cut(string(v), "."); noun {
	case "context":
		return extras.Code == nil || v == cove.ContextAnalyze && !extras.Looks
	case "run":
		return extras.Query == nil
	case "dataset", "chat":
		return extras.Data == nil
	case "template":
		return v != cove.TemplateList // who keeps none changes none
	case "node":
		return v != cove.NodeList // a server that is alone is not drained
	case "trial":
		return lacks(cove.PowerTrial)
	case "link":
		return extras.Links == nil
	case "port":
		return extras.Serve == nil || lacks(cove.PowerDial)
	}
	switch v { //nolint:exhaustive // every other verb needs no power
	case cove.SnapshotPause, cove.SnapshotResume:
		return lacks(cove.PowerPause)
	case cove.SnapshotSnapshot, cove.SnapshotDelete:
		return lacks(cove.PowerSnapshot)
	case cove.SnapshotFork:
		return lacks(cove.PowerFork)
	case cove.SessionSetNetwork:
		return r.capabilities().Isolation.Network != cove.Hard
	case cove.ProcessResize:
		return lacks(cove.PowerTerminal)
	}
	return false
}
