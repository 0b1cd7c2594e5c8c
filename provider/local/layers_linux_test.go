package local_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestLayersUser is all about layers, as an ordinary user.
func TestLayersUser(t *testing.T) {
	tier.Full(t, "the same tests run as root")
	linuxtest.Again(t, "^TestLayers(Trial|Busy|Snapshot|Copy|Fork|Limits|Hostile|Gone|Deep)")
}

// sh runs a line in a sandbox and returns what it printed; a line that fails
// ends the test.
func sh(t *testing.T, s cove.Sandbox, line string) string {
	t.Helper()
	out, code := runs(t, s, line)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s", line, code, out)
	}
	return out
}

func runs(t *testing.T, s cove.Sandbox, line string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"bash", "-c", line}, Stdout: &out, Stderr: &out})
	must(t, err)
	r, err := p.Wait(t.Context())
	must(t, err)
	return out.String(), r.ExitCode
}

func try(t *testing.T, s cove.Sandbox) cove.Trial {
	t.Helper()
	trier, ok := cove.As[cove.Trier](s)
	if !ok {
		t.Fatal("the sandbox is no Trier")
	}
	trial, err := trier.Try(t.Context())
	must(t, err)
	return trial
}

// changed lists what a trial changed, as kind and path.
func changed(t *testing.T, trial cove.Trial) []string {
	t.Helper()
	var all []string
	for c, err := range trial.Changes(t.Context()) {
		must(t, err)
		if (c.Info == nil) != (c.Kind == cove.Removed) || c.Info != nil && c.Info.Path != c.Path {
			t.Errorf("%s %s is described by %+v", c.Kind, c.Path, c.Info)
		}
		all = append(all, string(c.Kind)+" "+strings.TrimPrefix(c.Path, cove.WorkspacePath+"/"))
	}
	return all
}

func layeredProvider(t *testing.T) *local.Provider {
	t.Helper()
	p := provider(t, config(t.TempDir()))
	if !local.Layers(p) {
		linuxtest.Need(t, local.Stacking())
	}
	return p
}

const furnish = `mkdir -p dir/sub gone new.d; echo one > one; echo two > two; echo deep > dir/sub/deep; echo x > gone/x; echo y > gone/y
ln -s one link; chmod 640 two; python3 -c 'import os; os.setxattr("dir", "user.d", b"1"); os.setxattr("two", "user.f", b"1"); os.setxattr("dir/sub", "user.gone", b"1")'; mkfifo pipe; echo same > same; mkdir a; echo in > a/in; echo no > a-b`

// Everything that a program can do to a file, seen in the changes, and then for
// good or not at all.
func TestLayersTrial(t *testing.T) {
	p := layeredProvider(t)
	for _, below := range []string{"nothing", "snapshot"} {
		t.Run(below, func(t *testing.T) {
			s := create(t, p)
			sh(t, s, furnish)
			if below == "snapshot" {
				shoot(t, p, s)
				sh(t, s, "echo later > later")
			}
			const look = `find . -printf '%p %y %m %l\n' | sort; cat one two a/in dir/sub/deep new 2>&1; python3 -c '
import os
for d, ds, fs in sorted(os.walk(".")):
    for f in [d] + sorted(d + "/" + f for f in fs):
        if os.path.isfile(f) or os.path.isdir(f):
            for n in sorted(os.listxattr(f, follow_symlinks=False)): print(f, n, os.getxattr(f, n))
'`
			before := sh(t, s, look)
			trial := try(t, s)
			sh(t, s, `echo more >> one; chmod 600 two; rm -r gone; ln -sfn two link; echo new > new; mkdir -p made/deep; echo f > made/deep/f
				exec 3<>same; exec 3>&-; rm dir/sub/deep; rm -r a; mkdir a; echo again > a/other; rm a-b; mkdir a-b; rmdir new.d; echo file > new.d`)
			want := []string{
				"modified a-b", "removed a/in", "created a/other", "removed dir/sub/deep", "removed gone", "removed gone/x", "removed gone/y",
				"modified link", "created made", "created made/deep", "created made/deep/f", "created new", "modified new.d", "modified one", "modified two",
			}
			if d := cmp.Diff(want, changed(t, trial)); d != "" {
				t.Errorf("changes (-want +got):\n%s", d)
			}
			must(t, trial.Discard(t.Context()))
			if d := cmp.Diff(before, sh(t, s, look)); d != "" {
				t.Errorf("discarded (-before +after):\n%s", d)
			}
			wants(t, cove.Conflict, trial.Commit(t.Context()), "commit what was discarded")
			_, err := keeper(t, s).Tried(t.Context())
			wants(t, cove.NotFound, err, "the trial that is open")
			trial = try(t, s)
			same, err := keeper(t, s).Tried(t.Context())
			must(t, err)
			sh(t, s, `echo more >> one; chmod 600 two; rm -r gone a; mkdir a; echo again > a/other; echo new > new; echo deeper >> dir/sub/deep
				python3 -c 'import os; os.setxattr("dir", "user.d", b"2"); os.setxattr("two", "user.f", b"2"); os.removexattr("dir/sub", "user.gone"); os.setxattr("a", "user.a", b"2")'
				mkdir -p dir/x made/deep; echo f > made/deep/f; rm made/deep/f; ln -sfn two link; rm a-b; mkdir a-b; rmdir new.d; echo file > new.d`)
			after := sh(t, s, look)
			must(t, same.Commit(t.Context()))
			wants(t, cove.Conflict, trial.Commit(t.Context()), "a second commit")
			if d := cmp.Diff(after, sh(t, s, look)); d != "" {
				t.Errorf("committed (-in the trial +after):\n%s", d)
			}
			if next := changed(t, try(t, s)); len(next) != 0 {
				t.Errorf("the next trial begins with %q", next)
			}
		})
	}
}

// tried is a sandbox that knows its trial.
type tried interface {
	Tried(ctx context.Context) (cove.Trial, error)
}

func keeper(t *testing.T, s cove.Sandbox) tried {
	t.Helper()
	k, ok := cove.As[tried](s)
	if !ok {
		t.Fatal("the sandbox does not know its trial")
	}
	return k
}

// shoot makes a snapshot, which is removed at the end.
func shoot(t *testing.T, p *local.Provider, s cove.Sandbox) cove.ID {
	t.Helper()
	name := cove.NewID()
	snap, _ := cove.As[cove.Snapshotter](s)
	_, err := snap.Snapshot(t.Context(), name)
	must(t, err)
	keeper, _ := cove.As[cove.SnapshotKeeper](p)
	t.Cleanup(func() { must(t, keeper.RemoveSnapshot(context.WithoutCancel(t.Context()), name)) })
	return name
}

// What uses the workspace keeps it where it is; what runs elsewhere does not.
func TestLayersBusy(t *testing.T) {
	p := layeredProvider(t)
	s := create(t, p)
	trier, _ := cove.As[cove.Trier](s)
	sh(t, s, "echo one > one")
	start := func(dir, line string) (end func()) {
		t.Helper()
		in, feed := io.Pipe()
		ready := make(chan struct{})
		program, err := s.Start(t.Context(), cove.Command{Argv: []string{"bash", "-c", line + "; echo; read x"}, Dir: dir, Stdin: in, Stdout: first{ready}})
		must(t, err)
		<-ready
		return func() {
			_ = feed.Close()
			_, err := program.Wait(t.Context())
			must(t, err)
		}
	}
	for name, line := range map[string]string{"directory": "true", "file": "exec 3< one; cd /", "written": "exec 3>> one; cd /", "mapped": "cp /bin/sleep .; ./sleep 1000 & cd /"} {
		t.Run(name, func(t *testing.T) {
			end := start("", line)
			_, err := trier.Try(t.Context())
			wants(t, cove.Conflict, err, "a trial while it is used")
			end()
			if name == "mapped" {
				sh(t, s, "pkill -9 sleep; true")
			}
			must(t, try(t, s).Discard(t.Context()))
		})
	}
	end := start("/tmp", "true")
	trial := try(t, s)
	end()
	end = start("", "echo two > two")
	wants(t, cove.Conflict, trial.Commit(t.Context()), "a commit while it is used")
	wants(t, cove.Conflict, trial.Discard(t.Context()), "a discard while it is used")
	_, err := trier.Try(t.Context())
	wants(t, cove.Conflict, err, "a second trial")
	snap, _ := cove.As[cove.Snapshotter](s)
	_, err = snap.Snapshot(t.Context(), cove.NewID())
	wants(t, cove.Conflict, err, "a snapshot during a trial")
	if d := cmp.Diff([]string{"created two"}, changed(t, trial)); d != "" {
		t.Error(d)
	}
	end()
	must(t, trial.Commit(t.Context()))
	if got := sh(t, s, "cat one two"); got != "one\ntwo\n" {
		t.Errorf("the files hold %q", got)
	}
	// A watch would go deaf.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for c, err := range s.Files().Watch(ctx, ".") {
		if must(t, err); c.Kind == cove.Watching {
			_, err := trier.Try(t.Context())
			wants(t, cove.Conflict, err, "a trial while somebody watches")
			break
		}
	}
	must(t, try(t, s).Discard(t.Context()))
	must(t, s.Destroy(t.Context()))
	_, err = trier.Try(t.Context())
	wants(t, cove.NotFound, err, "a trial in a sandbox that is gone")
	wants(t, cove.NotFound, trial.Discard(t.Context()), "a discard in a sandbox that is gone")
}

// first says when something is written to it.
type first struct{ ready chan struct{} }

func (f first) Write(b []byte) (int, error) {
	select {
	case <-f.ready:
	default:
		close(f.ready)
	}
	return len(b), nil
}

func fork(t *testing.T, s cove.Sandbox) cove.Sandbox {
	t.Helper()
	forker, ok := cove.As[cove.Forker](s)
	if !ok {
		t.Fatal("the sandbox is no Forker")
	}
	twin, err := forker.Fork(t.Context(), cove.NewID(), cove.Spec{})
	must(t, err)
	return twin
}

// Forks of forks see what was, whoever is gone, and change nothing of each other.
func TestLayersFork(t *testing.T) {
	p := layeredProvider(t)
	chain := []cove.Sandbox{create(t, p)}
	sh(t, chain[0], "mkdir d; echo 0 > d/0; echo all > all")
	for i := range 14 { // more than there can be layers
		next := fork(t, chain[i])
		sh(t, next, fmt.Sprintf("echo %d > d/%d; echo %d > all; stat -c %%U all d/0 | uniq -c", i+1, i+1, i+1))
		sh(t, chain[i], "echo changed >> all; rm d/0; mkdir -p after")
		if i%3 == 2 {
			must(t, chain[i].Destroy(t.Context()))
		}
		chain = append(chain, next)
	}
	last := chain[len(chain)-1]
	if got, want := sh(t, last, "cat all; ls d | sort -n | tr '\n' ' '; ls; stat -c %u:%g d/3 all; echo more >> d/3; cat d/3"), "14\n0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 all\nd\n1000:1000\n1000:1000\n3\nmore\n"; got != want {
		t.Errorf("the last has %q; want %q", got, want)
	}
	if got, want := sh(t, chain[4], "cat all; ls d | tr '\n' ' '; cat d/3"), "4\nchanged\n1 2 3 4 3\n"; got != want {
		t.Errorf("one in the middle has %q; want %q", got, want)
	}
	// A trial fits on whatever is below.
	trial := try(t, last)
	sh(t, last, "rm d/1 all; echo x > d/x")
	if d := cmp.Diff([]string{"removed all", "removed d/1", "created d/x"}, changed(t, trial)); d != "" {
		t.Error(d)
	}
	must(t, trial.Commit(t.Context()))
	if got := sh(t, last, "ls; ls d | wc -l"); got != "d\n15\n" {
		t.Errorf("after the commit it has %q", got)
	}
}

// Limits are what they were, whatever the workspace is made of.
func TestLayersLimits(t *testing.T) {
	p := layeredProvider(t)
	spec := cove.Spec{Workspace: cove.Workspace{Size: 1 * cove.MiB, Files: 50}}
	make := func(id cove.ID) cove.Sandbox {
		spec := spec
		spec.Snapshot = id
		s, err := p.Create(t.Context(), cove.NewID(), spec)
		must(t, err)
		return s
	}
	// Each fills up what is there, in bytes and in files, and says how much it was.
	const fill = `head -c 2000000 /dev/zero > fill 2>/dev/null; stat -c %s fill; rm fill; i=0; while : > f$i; do i=$((i+1)); done 2>/dev/null; echo $i; rm -f f[0-9]*`
	s := make("")
	full := "1048576\n50\n"
	if got := sh(t, s, fill); got != full {
		t.Errorf("an empty one takes %q; want %q", got, full)
	}
	trial := try(t, s)
	if got := sh(t, s, fill); got != full {
		t.Errorf("a trial takes %q; want %q", got, full)
	}
	must(t, trial.Discard(t.Context()))
	if got := sh(t, s, fill); got != full {
		t.Errorf("after a discard it takes %q; want %q", got, full)
	}
	sh(t, s, "head -c 524288 /dev/zero > half")
	usage, err := s.Usage(t.Context())
	must(t, err)
	if usage.Files != 1 || usage.Disk != 524288 {
		t.Errorf("one file is %d files and %d bytes", usage.Files, usage.Disk)
	}
	name := shoot(t, p, s)
	half := "524288\n49\n"
	if got := sh(t, s, fill); got != half {
		t.Errorf("after a snapshot it takes %q; want %q", got, half)
	}
	// The files of the snapshot are in the bounds of a session that begins with them.
	if got := sh(t, make(name), fill); got != half {
		t.Errorf("one from the snapshot takes %q; want %q", got, half)
	}
	spec.Workspace.Size = 256 * cove.KiB
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name, Workspace: spec.Workspace})
	wants(t, cove.Exhausted, err, "a snapshot that does not fit")
	trial = try(t, s)
	sh(t, s, "rm half; echo x > small")
	must(t, trial.Commit(t.Context()))
	usage, err = s.Usage(t.Context())
	must(t, err)
	if usage.Files != 3 { // half, which the snapshot has; what says that it is gone; and small
		t.Errorf("three files are %d", usage.Files)
	}
}
