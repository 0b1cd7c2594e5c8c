package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestLayersUser is all about layers, as an ordinary user.
func TestLayersUser(t *testing.T) {
	linuxtest.Again(t, "^TestLayers(Trial|Busy|Snapshot|Copy|Fork|Limits|Hostile|Gone|Deep|None)")
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
	p, ok := open(t).(*local.Provider)
	if !ok || !local.Layers(p) {
		linuxtest.Need(t, local.Stacking())
	}
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

const furnish = `mkdir -p dir/sub gone new.d; echo one > one; echo two > two; echo deep > dir/sub/deep; echo x > gone/x; echo y > gone/y
ln -s one link; chmod 640 two; mkfifo pipe; echo same > same; mkdir a; echo in > a/in; echo no > a-b`

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
			const look = `find . -printf '%p %y %m %l\n' | sort; cat one two a/in dir/sub/deep new 2>&1; getfattr -R -d -m - . 2>/dev/null; true`
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
			trial = try(t, s)
			sh(t, s, `echo more >> one; chmod 600 two; rm -r gone a; mkdir a; echo again > a/other; echo new > new; rm -r dir; mkdir -p dir/x; ln -sfn two link; rm a-b; mkdir a-b; rmdir new.d; echo file > new.d`)
			after := sh(t, s, look)
			must(t, trial.Commit(t.Context()))
			if d := cmp.Diff(after, sh(t, s, look)); d != "" {
				t.Errorf("committed (-in the trial +after):\n%s", d)
			}
			if next := changed(t, try(t, s)); len(next) != 0 {
				t.Errorf("the next trial begins with %q", next)
			}
		})
	}
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

// special makes files that a copy could get wrong.
const special = `mkdir -p d/e; echo hard > d/hard; ln d/hard d/e/other; truncate -s 100M sparse; printf x | dd of=sparse bs=1 seek=50000000 conv=notrunc status=none
cp /bin/true su; chmod 4755 su; chmod 2755 d; chmod 1777 d/e; mkfifo fifo; ln -s /etc/passwd out; ln -s nowhere 'dang ling'; touch -d @1234567.5 old; touch -d @7654321 d/e
printf z > $'new\nline'; printf z > $'\xff\xfe'; mkdir locked; echo s > locked/s; chmod 0 locked/s; chmod 0 locked
python3 - <<'P'
import os, socket
os.setxattr("old", "user.note", b"a\0b"); os.setxattr("d", "user.dir", b"d")
s = socket.socket(socket.AF_UNIX); s.bind("sock")
P
true`

// described says everything about files that can be seen.
const described = `chmod 700 locked; find . ! -path ./locked -printf '%p|%y|%m|%n|%s|%l|%T@\n' | LC_ALL=C sort; stat -c '%i' d/hard d/e/other | uniq | wc -l; stat -c %b sparse; chmod 600 locked/s; cat locked/s; chmod 0 locked/s locked
python3 -c 'import os
for f in ("old","d"): print([(n, os.getxattr(f, n)) for n in os.listxattr(f)])'; id -u; stat -c %u:%g . d su old`

// A snapshot holds everything, by sharing, by copying, and by a file.
func TestLayersSnapshot(t *testing.T) {
	dir := providertest.Dir(t)
	again := func(t *testing.T) *local.Provider {
		p, err := local.New(local.Config{Dir: dir})
		must(t, err)
		providertest.Ready(t, p)
		if !local.Layers(p) {
			linuxtest.Need(t, local.Stacking())
		}
		return p
	}
	p := again(t)
	s := create(t, p)
	sh(t, s, special)
	want := sh(t, s, described)
	snap, _ := cove.As[cove.Snapshotter](s)
	shared, copied := cove.NewID(), cove.NewID()
	_, err := snap.Snapshot(t.Context(), shared)
	must(t, err)
	in, feed := io.Pipe()
	busy, err := s.Start(t.Context(), cove.Command{Argv: []string{"cat"}, Stdin: in})
	must(t, err)
	sh(t, s, "chmod 700 .; touch -d @1000000000 .; echo later > later; rm later")
	_, err = snap.Snapshot(t.Context(), copied)
	must(t, err)
	must(t, feed.Close())
	_, err = busy.Wait(t.Context())
	must(t, err)
	sh(t, s, "chmod -R 700 locked; rm -rf d old su locked; echo > sparse")
	check := func(p *local.Provider, how string) {
		t.Helper()
		for name, id := range map[string]cove.ID{"shared": shared, "copied": copied} {
			made, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: id})
			must(t, err)
			got := sh(t, made, described)
			if d := cmp.Diff(rest(want), rest(got)); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, how, d)
			}
			must(t, made.Destroy(t.Context()))
		}
	}
	check(p, "in memory")
	must(t, p.Close())
	p = again(t)
	check(p, "from the disk")
	keeper, _ := cove.As[cove.SnapshotKeeper](p)
	for _, id := range []cove.ID{shared, copied} {
		must(t, keeper.RemoveSnapshot(t.Context(), id))
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: id})
		wants(t, cove.NotFound, err, "a snapshot that was removed")
	}
	must(t, p.Close())
	if left, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*")); len(left) > 0 {
		t.Errorf("on the disk are still %q", left)
	}
}

// rest leaves out the line of the topmost directory, whose times differ.
func rest(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, ".|") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
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

// What a sandbox writes into its files reaches nothing but its files, also when
// they are layers of something, and whatever the host walks over.
func TestLayersHostile(t *testing.T) {
	p := layeredProvider(t)
	s := create(t, p)
	sh(t, s, `mkdir victim mine redirected; echo secret > victim/secret; echo own > mine/own; : > meta; mkdir ghost; echo g > ghost/g; mknod white c 0 0; mknod mine/white c 0 0
python3 - <<'P'
import os
for f in ("mine", "redirected", "meta", "ghost", "mine/own"):
    for n, v in (("opaque", b"y"), ("redirect", b"/../../../etc"), ("metacopy", b""), ("origin", b"\0\xfb\x1d\0"), ("whiteout", b""), ("impure", b"y"), ("upper", b"x")):
        for prefix in ("user.overlay.", "user.overlay.overlay."):
            try: os.setxattr(f, prefix + n, v)
            except OSError as e: pass
for n in ("trusted.overlay.redirect", "trusted.overlay.opaque"):
    try: os.setxattr("mine", n, b"/etc"); print("trusted", n)
    except OSError: pass
P`)
	twin := fork(t, fork(t, s))
	for _, box := range []cove.Sandbox{s, twin} {
		got, _ := run(t, box, "cat victim/secret ghost/g; cat mine/* redirected/* meta 2>/dev/null; find . -name passwd -o -name shadow; ls -A redirected")
		if got != "secret\ng\nown\n" && got != "secret\ng\n" { // it may hide what is its own
			t.Errorf("it sees %q", got)
		}
	}
	trial := try(t, s)
	sh(t, s, `rm -r victim; ln -s /etc victim; mkdir -p new; ln -s /proc/self/root new/root; ln -s / new/slash; printf x > $'a\nb'; printf x > $'\xff'; (mkdir many; cd many; seq 3000 | xargs touch)`)
	all := changed(t, trial)
	var few []string
	for _, c := range all {
		if !strings.HasPrefix(c, "created many/") {
			few = append(few, c)
		}
	}
	want := []string{"created a\nb", "created many", "created new", "created new/root", "created new/slash", "modified victim", "removed victim/secret", "created \xff"}
	if d := cmp.Diff(want, few); d != "" || len(all) != len(want)+3000 {
		t.Errorf("%d changes (-want +got):\n%s", len(all), d)
	}
	must(t, trial.Commit(t.Context()))
	if got := sh(t, s, "readlink victim new/root; ls many | wc -l"); got != "/etc\n/proc/self/root\n3000\n" {
		t.Errorf("committed is %q", got)
	}

	// Somebody swaps what the host walks over.
	trial = try(t, s)
	in, feed := io.Pipe()
	swap, err := s.Start(t.Context(), cove.Command{Argv: []string{"python3", "-c", `
import os, threading
os.makedirs("deep/er/still"); open("deep/er/still/f", "w").close()
def spin():
    while True:
        os.rename("deep", "aside"); os.symlink("/etc", "deep"); os.unlink("deep"); os.rename("aside", "deep")
threading.Thread(target=spin, daemon=True).start()
import sys; sys.stdin.read()`}, Stdin: in})
	must(t, err)
	for range 50 {
		for _, c := range changed(t, trial) {
			if name := strings.SplitN(c, " ", 2)[1]; !strings.HasPrefix(name, "deep") && !strings.HasPrefix(name, "aside") {
				t.Fatalf("the host saw %q", c)
			}
		}
	}
	must(t, feed.Close())
	_, err = swap.Wait(t.Context())
	must(t, err)
	must(t, trial.Discard(t.Context()))
}

// However deep a tree is, it can be discarded, and what cannot be walked over is
// said.
func TestLayersDeep(t *testing.T) {
	p := layeredProvider(t)
	s := create(t, p)
	for name, depth := range map[string]int{"walked": 1000, "refused": 2000} {
		t.Run(name, func(t *testing.T) {
			trial := try(t, s)
			sh(t, s, fmt.Sprintf(`python3 -c '
import os
os.mkdir("%s"); os.chdir("%s")
for i in range(%d): os.mkdir("dddd"); os.chdir("dddd")
open("f", "w").write("bottom")'`, name, name, depth))
			n := 0
			var err error
			for _, err = range trial.Changes(t.Context()) {
				if err != nil {
					break
				}
				n++
			}
			if name == "walked" {
				must(t, err)
				if n != depth+2 {
					t.Errorf("%d changes", n)
				}
				must(t, trial.Commit(t.Context()))
				got := sh(t, fork(t, s), `python3 -c '
import os
n = 0; os.chdir("walked")
while os.path.exists("dddd"): os.chdir("dddd"); n += 1
print(n, open("f").read())'; rm -r walked`)
				if got != "1000 bottom\n" {
					t.Errorf("the twin has %q", got)
				}
				return
			}
			wants(t, cove.Unavailable, err, "the changes")
			wants(t, cove.Unavailable, trial.Commit(t.Context()), "a commit")
			must(t, trial.Discard(t.Context()))
		})
	}
}

// What is left after all is nothing.
func TestLayersGone(t *testing.T) {
	p := layeredProvider(t)
	s := create(t, p)
	s2 := create(t, p)
	must(t, s2.Destroy(t.Context())) // so that all is open that stays so
	before := len(descriptors(t))
	keeper, _ := cove.As[cove.SnapshotKeeper](p)
	for range 3 {
		name := cove.NewID()
		snap, _ := cove.As[cove.Snapshotter](s)
		sh(t, s, "date +%N > now")
		_, err := snap.Snapshot(t.Context(), name)
		must(t, err)
		from, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
		must(t, err)
		twin := fork(t, from)
		trial := try(t, twin)
		sh(t, twin, "echo x > x")
		changed(t, trial)
		must(t, from.Destroy(t.Context()))
		must(t, twin.Destroy(t.Context()))
		local.Written(p)
		must(t, keeper.RemoveSnapshot(t.Context(), name))
	}
	must(t, s.Destroy(t.Context()))
	if after := descriptors(t); len(after) >= before {
		t.Errorf("%d descriptors were open, and now %q are", before, after)
	}
	_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: cove.NewID()})
	wants(t, cove.NotFound, err, "a snapshot that there is none of")
}

// Where there are no layers, nothing is promised, and all else is as ever.
func TestLayersNone(t *testing.T) {
	providertest.Run(t, func(t *testing.T) cove.Provider {
		cfg := local.Config{Dir: providertest.Dir(t)}
		cfg.Weaken("layers")
		p, err := local.New(cfg)
		must(t, err)
		providertest.Ready(t, p)
		return p
	}, "lifecycle", "powers", "prepare", "limits", "usage")
	p, ok := open(t).(*local.Provider)
	if !ok {
		t.Fatal("no provider")
	}
	defer func() { must(t, p.Close()) }()
	local.Flatten(p, errors.New("no overlays for you"))
	caps, err := p.Probe(t.Context())
	must(t, err)
	if slices.Contains(caps.Powers, cove.PowerTrial) || !slices.ContainsFunc(caps.Notes, func(n string) bool { return strings.Contains(n, "no overlays for you") }) {
		t.Errorf("the powers are %q, and the notes %q", caps.Powers, caps.Notes)
	}
	s := create(t, p)
	says(t, s)
	if _, ok := cove.As[cove.Trier](s); ok {
		t.Error("a sandbox without layers is a Trier")
	}
	if _, ok := cove.As[cove.SnapshotKeeper](p); ok {
		t.Error("a provider without layers keeps snapshots")
	}
}

func descriptors(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	return all
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
	// The files of the snapshot are another's.
	if got := sh(t, make(name), fill); got != full {
		t.Errorf("one from the snapshot takes %q; want %q", got, full)
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
