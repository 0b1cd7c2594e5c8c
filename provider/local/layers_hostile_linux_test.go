package local_test

import (
	"errors"
	"fmt"
	"io"
	"os"
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
		got, _ := runs(t, box, "cat victim/secret ghost/g; cat mine/* redirected/* meta 2>/dev/null; find . -name passwd -o -name shadow; ls -A redirected")
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
	for _, c := range []struct {
		name  string
		depth int
	}{{"refused", 2000}, {"walked", 1000}} {
		name, depth := c.name, c.depth
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

// A snapshot that cannot be written down is there until the process ends, and
// somebody is told.
func TestLayersUnwritten(t *testing.T) {
	dir := providertest.Dir(t)
	cfg := local.Config{Dir: dir}
	p, err := local.New(cfg)
	must(t, err)
	providertest.Ready(t, p)
	if !local.Layers(p) {
		linuxtest.Need(t, local.Stacking())
	}
	s := create(t, p)
	sh(t, s, `python3 -c '
import os
for i in range(2000): os.mkdir("dddd"); os.chdir("dddd")'`)
	name := cove.NewID()
	snap, _ := cove.As[cove.Snapshotter](s)
	_, err = snap.Snapshot(t.Context(), name)
	must(t, err)
	local.Written(p)
	caps, err := p.Probe(t.Context())
	must(t, err)
	if !slices.ContainsFunc(caps.Notes, func(n string) bool { return strings.Contains(n, string(name)) }) {
		t.Errorf("nobody is told: %q", caps.Notes)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
	must(t, err)
	must(t, p.Close())
	// A crash leaves a draft, which is no snapshot.
	draft := filepath.Join(dir, "snapshots", string(name)+".draft")
	must(t, os.WriteFile(draft, []byte("cove tree 1"), 0o600))
	p, err = local.New(cfg)
	must(t, err)
	defer func() { must(t, p.Close()) }()
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
	wants(t, cove.NotFound, err, "a snapshot that was never written")
	if _, err := os.Lstat(draft); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is there still: %v", err)
	}
	// Nor is one that is damaged.
	must(t, os.WriteFile(filepath.Join(dir, "snapshots", string(name)+".tree"), []byte("cove tree 1"), 0o600))
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
	wants(t, cove.Unavailable, err, "a snapshot that is damaged")
	if left := ids(t, p); len(left) != 0 {
		t.Errorf("there are sandboxes %q", left)
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
	}, "powers", "prepare", "usage")
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
