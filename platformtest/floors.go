package platformtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
)

func floorCases() []testCase {
	return []testCase{
		{"limits", floorLimits},
		{"isolation", floorIsolation},
		{"made_up_floors", madeUpFloors},
	}
}

// asking returns a spec that sets one limit and nothing else.
func asking(l cove.Limit) cove.Spec {
	switch l {
	case cove.LimitNetwork:
		return cove.Spec{Network: cove.Network{Mode: cove.NetworkNone}}
	case cove.LimitMemory:
		return cove.Spec{Resources: cove.Resources{Memory: 64 * cove.MiB}}
	case cove.LimitCPU:
		return cove.Spec{Resources: cove.Resources{CPUs: 0.5}}
	case cove.LimitPIDs:
		return cove.Spec{Resources: cove.Resources{PIDs: 64}}
	case cove.LimitDisk:
		return cove.Spec{Workspace: cove.Workspace{Size: cove.MiB}}
	case cove.LimitFiles:
		return cove.Spec{Workspace: cove.Workspace{Files: 1000}}
	}
	return cove.Spec{}
}

// floorLimits: a limit that was asked for is enforced, or nothing is opened.
func floorLimits(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	caps := r.capabilities()
	for kind := range caps.Workspaces {
		for _, limit := range cove.LimitNames() {
			t.Run(fmt.Sprintf("%s with a %s workspace", limit, kind), func(t *testing.T) {
				spec := asking(limit)
				spec.Workspace.Kind = kind
				if !slices.Contains(caps.Networks, cove.NetworkNone) {
					t.Skip("the provider has no network mode none")
				}
				made, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: spec})
				if caps.For(kind).Of(limit) == cove.Hard {
					if err != nil {
						t.Fatalf("a limit that the provider enforces: %v", err)
					}
					if made.Isolation.Of(limit) != cove.Hard || !slices.Equal(made.Spec.Floors, []cove.Limit{limit}) {
						t.Errorf("the session has the isolation %+v and the floors %v", made.Isolation, made.Spec.Floors)
					}
					return
				}
				wantReason(t, err, cove.Unsupported, cove.ReasonLimitNotEnforced)
				if got := detail(err, "limit"); got != string(limit) || cove.RemedyOf(err) == "" {
					t.Errorf("the error names the limit %v and the remedy %q", got, cove.RemedyOf(err))
				}
			})
		}
	}
}

func floorIsolation(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	have := r.capabilities().Isolation.Boundary
	for _, want := range cove.Boundaries() {
		made, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Require: cove.Require{Isolation: want}}})
		if have.AtLeast(want) {
			r.must(err, "require what there is")
			if !made.Isolation.Boundary.AtLeast(want) {
				t.Errorf("%s was required and the session has %s", want, made.Isolation.Boundary)
			}
			continue
		}
		wantField(t, err, cove.Unsupported, "require.isolation")
	}
}

// madeUpFloors: what a caller writes as its floors counts for nothing.
func madeUpFloors(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	made := r.session(r.user("acme"), cove.Spec{Floors: cove.LimitNames()})
	if len(made.Spec.Floors) > 0 {
		t.Errorf("a caller wrote the floors %v", made.Spec.Floors)
	}
}
