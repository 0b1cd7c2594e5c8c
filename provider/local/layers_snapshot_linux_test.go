package local_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

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

// What does not stay in memory is read from the disk, and what can be in neither
// is refused.
func TestLayersShed(t *testing.T) {
	defer local.KeepInMemory(150 * cove.KiB)()
	p := layeredProvider(t)
	s := create(t, p)
	snap, _ := cove.As[cove.Snapshotter](s)
	for _, text := range []string{"first", "second", "third"} {
		name := cove.NewID()
		sh(t, s, "echo "+text+" > text; head -c 102400 /dev/zero > "+text)
		_, err := snap.Snapshot(t.Context(), name)
		must(t, err)
		local.Written(p)
		made, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
		must(t, err)
		if got := sh(t, made, "cat text"); got != text+"\n" {
			t.Errorf("%s has %q", text, got)
		}
		_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name, Workspace: cove.Workspace{Size: 64 * cove.KiB}})
		wants(t, cove.Exhausted, err, "a snapshot that does not fit")
		must(t, made.Destroy(t.Context()))
	}
}
