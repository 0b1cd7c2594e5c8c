//go:build linux

package gvisor_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/flock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/userns"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// hostUsers tells which users of the host the processes of each sandbox of a directory
// are, by the name that the runtime knows it by.
func hostUsers(t *testing.T, dir string) map[string][]uint32 {
	t.Helper()
	users := map[string][]uint32{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		line, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		_, after, ours := strings.Cut(string(line), filepath.Join(dir, "bundles")+"/")
		if err != nil || !ours || !strings.HasPrefix(string(line), "runsc-") {
			continue
		}
		name, _, _ := strings.Cut(after, "\x00")
		status, err := os.ReadFile(filepath.Join(proc, "status"))
		if err != nil {
			continue // it ended
		}
		for _, id := range []string{"Uid:", "Gid:"} {
			_, after, _ := strings.Cut(string(status), id)
			ids, _, _ := strings.Cut(after, "\n")
			for one := range strings.FieldsSeq(ids) {
				n, err := strconv.ParseUint(one, 10, 32)
				if err != nil {
					t.Fatal(err)
				}
				users[name] = append(users[name], uint32(n))
			}
		}
	}
	for name, ids := range users {
		if len(ids) < 2*2*4 {
			t.Errorf("sandbox %s has too few processes to be all of it: users %v", name, ids)
		}
		slices.Sort(ids)
		users[name] = slices.Compact(ids)
	}
	return users
}

// apart checks that so many sandboxes are one user of the host each, and no two the same.
func apart(t *testing.T, dir string, sandboxes int) {
	t.Helper()
	users := hostUsers(t, dir)
	var all []uint32
	for _, ids := range users {
		all = append(all, ids...)
	}
	slices.Sort(all)
	if len(users) != sandboxes || len(all) != sandboxes || len(slices.Compact(all)) != sandboxes {
		t.Errorf("%d sandboxes are the users %v of the host", sandboxes, slices.Collect(maps.Values(users)))
	}
	for _, id := range all {
		if id < userns.FirstUser || id >= userns.EndOfUsers {
			t.Errorf("a sandbox is the host's own user %d", id)
		}
	}
}

// leased reports whether a sandbox has a user and the one after it.
func leased(t *testing.T, user uint32) bool {
	t.Helper()
	f, err := os.Open(filepath.Join(userns.MachineDir, strconv.FormatUint(uint64(user), 10)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	free, err := flock.Try(f, flock.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	return !free
}

// TestNeighboursAreDifferentUsersOfTheHost has the kernel and the file server of each
// sandbox be a user of its own, also of what goes on from memory, and after a restart of the
// server, which two sandboxes outlive with what they hold.
func TestNeighboursAreDifferentUsersOfTheHost(t *testing.T) {
	linuxtest.NeedRoot(t)
	dir := providertest.Dir(t)
	p := open(t)
	id := cove.NewID()
	s, err := p.Create(t.Context(), id, cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if r, text := shell(t, s, "echo kept > file"); r.ExitCode != 0 {
		t.Fatalf("%+v %s", r, text)
	}
	f, _ := cove.As[cove.Forker](s)
	second := cove.NewID()
	twin, err := f.Fork(t.Context(), second, cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, text := shell(t, twin, "cat file"); text != "kept" {
		t.Errorf("a copy has %q", text)
	}
	apart(t, dir, 2)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, ids := range hostUsers(t, dir) {
		if !leased(t, ids[0]) {
			t.Errorf("user %d of a sandbox that lives is to be had while no server runs", ids[0])
		}
	}
	p = closeLater(t, open(t))
	for _, one := range []cove.ID{id, second} {
		again, err := p.Attach(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		destroyLater(t, again)
		if _, text := shell(t, again, "cat file"); text != "kept" {
			t.Errorf("after a restart there is %q", text)
		}
	}
	create(t, p, cove.Spec{})
	apart(t, dir, 3)
}

// TestVolumesKeepTheirOwner has what two sandboxes make in a volume be its owner's, and
// each use what the other made.
func TestVolumesKeepTheirOwner(t *testing.T) {
	linuxtest.NeedRoot(t)
	p := closeLater(t, open(t))
	dir := t.TempDir()
	if err := os.Chown(dir, 4711, 4712); err != nil {
		t.Fatal(err)
	}
	spec := cove.Spec{Volumes: []cove.Volume{{Source: dir, Target: "/data", Write: true}}}
	for i, script := range []string{"echo one > /data/file; mkdir /data/in", "echo two >> /data/file && echo x > /data/in/side; stat -c %u /data/file"} {
		r, text := shell(t, create(t, p, spec), script)
		if r.ExitCode != 0 || i == 1 && text != "1000" {
			t.Errorf("%s: %+v %s", script, r, text)
		}
	}
	for _, name := range []string{"file", "in", "in/side"} {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, name), &st); err != nil || st.Uid != 4711 || st.Gid != 4712 {
			t.Errorf("%s is of %d:%d, %v", name, st.Uid, st.Gid, err)
		}
	}
}
