//go:build linux

package fence_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// fullPlan has something in every field.
func fullPlan() *fence.Plan {
	return &fence.Plan{
		Root: fence.Root{
			Stage: "/stage", Shallow: true, Evidence: "/run/proc",
			Dirs:    []fence.Dir{{Path: "/a", Mode: 0o711}, {Path: "/a/b", Mode: 0o777}},
			Links:   []fence.Link{{Path: "/l", To: "../x"}},
			Files:   []fence.File{{Path: "/f", Text: []byte("line\n\x00\xff")}, {Path: "/empty", Text: []byte{}}},
			Binds:   []fence.Bind{{Source: "/usr", Path: "/usr", Dir: true, Over: []string{"/a", "/b"}, Keep: true}, {Source: "/s", Path: "/t"}},
			Devices: []string{"null", "zero"},
		},
		Host: "host", Inside: math.MaxUint32,
		Become: true, Proc: true, Network: true, Groups: true, Landlock: true, Layers: true, Nested: true,
		Filter: []byte{1, 2, 3, 0}, Limits: []fence.Limit{{Resource: 7, Most: math.MaxUint64}, {}},
		Shared: fence.Bounds{Size: math.MaxInt64, Files: -1},
		Argv:   []string{"agent", ""}, Env: []string{"A=b"},
	}
}

func TestPlanRoundTrip(t *testing.T) {
	for name, p := range map[string]*fence.Plan{"full": fullPlan(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			text := fence.EncodePlan(p)
			got, err := fence.DecodePlan(text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(p, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("plan (-sent +received):\n%s", d)
			}
			for cut := range text {
				if _, err := fence.DecodePlan(text[:cut]); err == nil {
					t.Fatalf("the first %d of %d bytes are a plan", cut, len(text))
				}
			}
			if _, err := fence.DecodePlan(append(text, 0)); err == nil {
				t.Error("a plan with a byte more is one, too")
			}
		})
	}
}

func TestRequestRoundTrip(t *testing.T) {
	room := fence.Places{Workspace: fence.Bounds{Size: 8, Files: 9}, Temp: fence.Bounds{Size: 10, Files: -1}}
	order := &fence.Order{
		Outside: 200_001, Places: fence.Places{Workspace: fence.Bounds{Size: 5, Files: 6}}, Handles: true,
		Volumes: []fence.Volume{{Source: "/a", Target: "/b", Write: true}, {Dir: true, Mapped: true}},
	}
	for name, want := range map[string]*fence.Order{"build": order, "resize": nil} {
		t.Run(name, func(t *testing.T) {
			text := fence.EncodeRequest(7, want, true, room)
			id, got, group, to, err := fence.DecodeRequest(text)
			if err != nil || id != 7 || !group || to != room || !cmp.Equal(want, got) {
				t.Errorf("received %d %+v %t %+v %v", id, got, group, to, err)
			}
			if _, _, _, _, err := fence.DecodeRequest(text[1:]); err == nil {
				t.Error("a part of a request is one")
			}
		})
	}
}

func TestWaysRoundTrip(t *testing.T) {
	want := fence.Ways{Local: []string{"198.18.0.0/15", "::/0"}, Server: "198.18.0.1", Ports: []uint16{80, 65535}, Both: true}
	got, err := fence.DecodeWays(fence.EncodeWays(9, want))
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("ways (-sent +received): %v\n%s", err, d)
	}
	want.Ports = make([]uint16, fence.MostPorts+1)
	if _, err := fence.DecodeWays(fence.EncodeWays(9, want)); err == nil {
		t.Error("too many ports are received")
	}
}

func TestNestRoundTrip(t *testing.T) {
	want := fence.Nest{Argv: []string{"python3", "-I"}, Env: []string{"A=b", ""}}
	text := fence.EncodeNest(4, want)
	got, err := fence.DecodeNest(text)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("nest (-sent +received): %v\n%s", err, d)
	}
	if _, err := fence.DecodeNest(text[:len(text)-1]); err == nil {
		t.Error("a part of a nest is one")
	}
}

func TestAnswerRoundTrip(t *testing.T) {
	for name, want := range map[string]fence.Fault{
		"done": {}, "refused": {Step: "mount", Errno: unix.EPERM}, "not by the kernel": {Step: "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			id, pid, failed, err := fence.DecodeAnswer(fence.EncodeAnswer(3, 1234, want))
			if err != nil || id != 3 || pid != 1234 {
				t.Fatalf("received %d %d %v", id, pid, err)
			}
			if want.Step == "" {
				if failed != nil {
					t.Errorf("received %v", failed)
				}
				return
			}
			if f, ok := errors.AsType[*fence.Fault](failed); !ok || *f != want || failed.Error() != want.Step {
				t.Errorf("received %v", failed)
			}
			if errors.Is(failed, unix.EPERM) != (want.Errno == unix.EPERM) {
				t.Errorf("%v wraps %v", failed, errors.Unwrap(failed))
			}
		})
	}
}

// FuzzDecode: whatever comes, reading it ends, and what is read means what was
// sent.
func FuzzDecode(f *testing.F) {
	f.Add(fence.EncodePlan(fullPlan()))
	f.Add(fence.EncodePlan(&fence.Plan{}))
	f.Add(fence.EncodeRequest(1, &fence.Order{Outside: 5, Handles: true}, true, fence.Places{}))
	f.Add(fence.EncodeRequest(2, nil, false, fence.Places{Temp: fence.Bounds{Size: 1, Files: 2}}))
	f.Add(fence.EncodeWays(3, fence.Ways{Local: []string{"a"}, Server: "b", Ports: []uint16{80}, Both: true}))
	f.Add(fence.EncodeNest(4, fence.Nest{Argv: []string{"a"}, Env: []string{"b"}}))
	f.Add(fence.EncodeAnswer(1, 2, fence.Fault{Step: "step", Errno: unix.EIO}))
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, again := range fence.Codecs {
			got, err := again(text)
			if err == nil && !bytes.Equal(got, text) {
				t.Errorf("%s %x is written as %x", name, text, got)
			}
		}
	})
}
