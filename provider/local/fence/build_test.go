//go:build linux

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func TestSandbox(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		b, err := open(t, kind, newPlan(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		s := build(t, b, anyOrder)
		if len(s.Handles) != 0 {
			t.Errorf("handles %d that nobody asked for", s.Handles)
		}
		for script, want := range map[string]string{
			"id -u":                          "1000\n",
			"hostname":                       "fenced\n",
			"pwd":                            "/workspace\n",
			"cat /note":                      "read me\n",
			"tr '\\0' ' ' < /proc/1/cmdline": "cove-agent ",
			"ls /run/proc 2> /dev/null; ls /sys 2> /dev/null":      "",
			"tail -n +3 /proc/net/dev | tr -d ' ' | cut -d : -f 1": "lo\n",
			"ulimit -n":                      "500\n",
			"head -c 3 /dev/zero | wc -c":    "3\n",
			"test -w /usr || echo read-only": "read-only\n",
			"echo x > f; cat f":              "x\n",
			"echo x > /tmp/f; cat /tmp/f; echo y > /dev/shm/f; cat /dev/shm/f": "x\ny\n",
			"grep Seccomp: /proc/self/status":                                  "Seccomp:\t2\n",
		} {
			if got, _ := s.run(t, script); got != want {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
	})
}

// TestStacks is about parts of a root that lie over one another.
func TestStacks(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		top, middle, below := t.TempDir(), t.TempDir(), t.TempDir()
		for name, text := range map[string]string{
			filepath.Join(top, "one"): "top", filepath.Join(middle, "one"): "middle", filepath.Join(middle, "two"): "middle",
			filepath.Join(below, "one"): "below", filepath.Join(below, "two"): "below", filepath.Join(below, "three"): "below", filepath.Join(below, "note"): "below",
		} {
			if err := os.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p := newPlan(t.TempDir())
		p.Root.Dirs = append(p.Root.Dirs, fence.Dir{Path: "/kept", Mode: 0o755})
		p.Root.Files = append(p.Root.Files, fence.File{Path: "/kept/note", Text: []byte("kept\n")})
		p.Root.Binds = append(p.Root.Binds,
			fence.Bind{Source: below, Path: "/stack", Dir: true, Over: []string{top, middle}},
			fence.Bind{Source: below, Path: "/kept", Dir: true, Keep: true})
		b, err := open(t, kind, p)
		if err != nil {
			t.Fatal(err)
		}
		s := build(t, b, anyOrder)
		for script, want := range map[string]string{
			"cd /stack; cat one two three": "top\nmiddle\nbelow\n",
			"cd /kept; cat note one":       "kept\nbelow\n",
			"cd /stack; for f in one two three new; do echo x 2> /dev/null > $f; rm -f $f 2> /dev/null; chmod 777 $f 2> /dev/null; done; cat one two three": "top\nmiddle\nbelow\n",
			"echo x > /kept/note 2> /dev/null; cat /kept/note": "kept\n",
		} {
			if got, _ := s.run(t, script); !strings.HasSuffix(got, want) {
				t.Errorf("%s: %q, want %q", script, got, want)
			}
		}
	})
}

func TestWeakerPlans(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		p := newPlan(t.TempDir())
		p.Root.Shallow, p.Landlock, p.Network, p.Filter = true, false, false, nil
		b, err := open(t, kind, p)
		if err != nil {
			t.Fatal(err)
		}
		s := build(t, b, anyOrder)
		if got, _ := s.run(t, "grep Seccomp: /proc/self/status"); got != "Seccomp:\t0\n" {
			t.Errorf("without a filter: %q", got)
		}
	})
}

func TestResize(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		b, err := open(t, kind, newPlan(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		o := anyOrder
		o.Handles = true
		s := build(t, b, o)
		const fill = "head -c 2000000 /dev/zero > f && head -c 2000000 /dev/zero > /tmp/f && echo done"
		if got, _ := s.run(t, fill); strings.HasSuffix(got, "done\n") {
			t.Fatalf("2 MB fit into 1 MiB: %s", got)
		}
		if err := b.Resize(t.Context(), s.Handles, room(4<<20)); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.run(t, fill); got != "done\n" {
			t.Errorf("after resizing: %s", got)
		}
		err = b.Resize(t.Context(), s.Handles, room(1<<20))
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("smaller than what is in it: %v", err)
		}
		if err := b.Resize(t.Context(), []int{s.Process, s.Process}, room(1<<20)); err == nil {
			t.Error("a process was resized")
		}
		if err := b.Resize(t.Context(), s.Handles[:1], room(8<<20)); err == nil {
			t.Error("half of it was resized")
		}
	})
}

func TestControlGroupsThatRefuse(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		b, err := open(t, kind, newPlan(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		executable, proc := opened(t)
		for name, h := range map[string]fence.Handles{
			"clone: ":                   {Group: proc},
			"enter the control group: ": {Group: -1, Tasks: []int{executable}},
		} {
			ours, theirs := link(t)
			h.Link = theirs
			o := anyOrder
			o.Handles = true
			_, err := b.Build(t.Context(), o, h)
			_, _ = unix.Close(ours), unix.Close(theirs)
			if err == nil || !strings.HasPrefix(err.Error(), name) || !errors.Is(err, unix.EBADF) {
				t.Errorf("%s: %v", name, err)
			}
		}
		build(t, b, anyOrder) // it still works
	})
}

func TestPlansThatCannotBe(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		for name, c := range map[string]struct {
			change func(p *fence.Plan)
			want   string
			errno  error
		}{
			"stage": {func(p *fence.Plan) { p.Root.Stage += "/missing" }, "/missing", unix.ENOENT},
			"bind":  {func(p *fence.Plan) { p.Root.Binds = append(p.Root.Binds, fence.Bind{Source: "/no/such", Path: "/x"}) }, "/no/such", unix.ENOENT},
			"bind dir": {func(p *fence.Plan) {
				p.Root.Binds = append(p.Root.Binds, fence.Bind{Source: "/usr", Path: "/no/x", Dir: true})
			}, "mkdir /no/x", unix.ENOENT},
			"layer":                {func(p *fence.Plan) { p.Root.Binds[0].Over = []string{"/no/such"} }, "/no/such", unix.ENOENT},
			"layer that is a file": {func(p *fence.Plan) { p.Root.Binds[0].Over = []string{"/proc/self/exe"} }, "/proc/self/exe", unix.ENOTDIR},
			"device":               {func(p *fence.Plan) { p.Root.Devices = append(p.Root.Devices, "no-such") }, "/dev/no-such", unix.ENOENT},
			"device dir":           {func(p *fence.Plan) { p.Root.Devices = append(p.Root.Devices, "no/such") }, "/dev/no/such", unix.ENOENT},
			"dir":                  {func(p *fence.Plan) { p.Root.Dirs = append(p.Root.Dirs, fence.Dir{Path: "/no/dir"}) }, "mkdir /no/dir", unix.ENOENT},
			"link":                 {func(p *fence.Plan) { p.Root.Links = append(p.Root.Links, fence.Link{Path: "/no/link"}) }, "symlink", unix.ENOENT},
			"file":                 {func(p *fence.Plan) { p.Root.Files = append(p.Root.Files, fence.File{Path: "/no/file"}) }, "/no/file", unix.ENOENT},
			"workspace":            {func(p *fence.Plan) { p.Root.Dirs = p.Root.Dirs[:len(p.Root.Dirs)-1] }, "/workspace", unix.ENOENT},
			"terminals": {func(p *fence.Plan) {
				p.Root.Dirs = append(p.Root.Dirs[:1:1], p.Root.Dirs[2:]...)
				p.Root.Links = p.Root.Links[1:]
			}, "/dev/pts", unix.ENOENT},
			"shared":    {func(p *fence.Plan) { p.Root.Dirs = append(p.Root.Dirs[:2:2], p.Root.Dirs[3:]...) }, "/dev/shm", unix.ENOENT},
			"temporary": {func(p *fence.Plan) { p.Root.Dirs = append(p.Root.Dirs[:5:5], p.Root.Dirs[6:]...) }, "/tmp", unix.ENOENT},
			"host name": {func(p *fence.Plan) { p.Host = strings.Repeat("x", 100) }, "host name", unix.EINVAL},
			"limit":     {func(p *fence.Plan) { p.Limits = []fence.Limit{{Resource: 99}} }, "limit resource 99", unix.EINVAL},
			"no agent":  {func(p *fence.Plan) { p.Argv = nil }, "no name", nil},
		} {
			t.Run(name, func(t *testing.T) {
				linuxtest.NoLeaks(t, "")
				p := newPlan(t.TempDir())
				c.change(p)
				b, err := open(t, kind, p)
				if err == nil {
					ours, theirs := link(t)
					o := anyOrder
					o.Handles = name == "limit"
					_, err = b.Build(t.Context(), o, fence.Handles{Link: theirs, Group: -1})
					_, _ = unix.Close(ours), unix.Close(theirs)
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || c.errno != nil && !errors.Is(err, c.errno) {
					t.Errorf("%v; want %q and %v", err, c.want, c.errno)
				}
			})
		}
	})
}

func TestBadFilter(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		p := newPlan(t.TempDir())
		p.Filter = []byte("no program")
		if _, err := open(t, kind, p); err == nil {
			t.Error("a builder without a filter")
		}
	})
}

func TestBadExecutable(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	_, proc := opened(t)
	p := newPlan(t.TempDir())
	if _, err := fence.Launch(p, proc, proc); err == nil {
		t.Error("a directory was launched")
	}
	program, err := unix.Open("/bin/true", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(program) }()
	if _, err := fence.Launch(p, program, proc); !errors.Is(err, fence.ErrEnded) {
		t.Errorf("a program that is no spawner: %v", err)
	}
}

func TestSilentExecutable(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	defer fence.SetPatience(50 * time.Millisecond)()
	_, proc := opened(t)
	program, err := unix.Open("/usr/bin/yes", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Close(program) }()
	if _, err := fence.Launch(newPlan(t.TempDir()), program, proc); err == nil || !strings.Contains(err.Error(), "says nothing") {
		t.Errorf("a program that goes on: %v", err)
	}
}

// TestStopped: a spawner that does not end by itself is ended.
func TestStopped(t *testing.T) {
	need(t)
	linuxtest.NoLeaks(t, "")
	b, err := open(t, "spawner", newPlan(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer fence.SetPatience(50 * time.Millisecond)()
	if err := unix.Kill(spawnerPID(t), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Resize(ctx, nil, room(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("resize: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestFiftyAtOnce(t *testing.T) {
	builders(t, func(t *testing.T, kind string) {
		b, err := open(t, kind, newPlan(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		boxes := make([]*box, 50)
		for i := range boxes {
			wg.Go(func() {
				o := anyOrder
				o.Outside += uint32(i)
				boxes[i] = build(t, b, o)
			})
		}
		wg.Wait()
		seen := map[int]bool{}
		for i, s := range boxes {
			if s == nil {
				t.FailNow()
			}
			seen[s.PID()] = true
			if i%10 != 0 {
				continue
			}
			if got, code := s.run(t, fmt.Sprintf("echo %d > f; cat f; ls | wc -l", i)); got != fmt.Sprintf("%d\n1\n", i) || code != 0 {
				t.Errorf("sandbox %d: %s", i, got)
			}
		}
		if len(seen) != len(boxes) {
			t.Errorf("%d processes", len(seen))
		}
	})
}

func TestUser(t *testing.T) {
	linuxtest.Again(t, "^(TestSandbox|TestStacks|TestWeakerPlans|TestResize|TestControlGroupsThatRefuse|TestPlansThatCannotBe|TestBadFilter|TestBadExecutable|TestSilentExecutable|TestStopped|TestFiftyAtOnce|TestKilled|TestKilledWhileBuilding|TestCanceled|TestHostGone|TestMalformedPlans|TestMalformedRequests|TestClosed)$")
}
