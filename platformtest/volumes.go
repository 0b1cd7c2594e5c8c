package platformtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
)

func volumeCases() []testCase {
	return []testCase{
		{"read_only", volumeReadOnly},
		{"write", volumeWrite},
		{"write_only_where_allowed", volumeWriteRefused},
		{"shared", volumeShared},
		{"outside_the_list", volumeOutside},
		{"bad_targets", volumeBadTargets},
	}
}

// allowed makes a host with one path on the operator's list.
func (s *suite) allowed(t *testing.T, o Options) (r *rig, base string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"allowed/sub", "allowed-evil", "secret"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"allowed/hello", "secret/hello"} {
		if err := os.WriteFile(filepath.Join(base, f), []byte("from the host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range o.Shared {
		o.Shared[i].Source = filepath.Join(base, o.Shared[i].Source)
	}
	o.Volumes = []string{filepath.Join(base, "allowed"), filepath.Join(base, "allowed/sub") + ":rw"}
	r = s.start(t, o)
	if !r.capabilities().Volumes {
		t.Skip("the provider cannot mount host paths")
	}
	return r, base
}

func volumeReadOnly(t *testing.T, s *suite) {
	r, base := s.allowed(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{Volumes: []cove.Volume{{Source: filepath.Join(base, "allowed"), Target: "/data"}}}).ID
	same(t, "a file of a volume", r.sh(p, id, "cat /data/hello"), "from the host\n")
	for _, line := range []string{"echo x > /data/new", "echo x > /data/hello", "rm /data/hello"} {
		if e := r.exec(p, id, cove.ExecRequest{Line: line}); e.ExitCode == 0 {
			t.Errorf("%q worked on a volume that is read-only", line)
		}
	}
	same(t, "the volume on the host", dirNames(r, filepath.Join(base, "allowed")), []string{"hello", "sub"})
	same(t, "a file of the volume after all attempts", r.sh(p, id, "cat /data/hello"), "from the host\n")
}

func volumeWrite(t *testing.T, s *suite) {
	r, base := s.allowed(t, Options{})
	if err := os.Chmod(filepath.Join(base, "allowed/sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	p := r.user("acme")
	id := r.session(p, cove.Spec{Volumes: []cove.Volume{{Source: filepath.Join(base, "allowed/sub"), Target: "/data", Write: true}}}).ID
	r.sh(p, id, "echo x > /data/new")
	same(t, "the volume on the host", dirNames(r, filepath.Join(base, "allowed/sub")), []string{"new"})
}

// volumeWriteRefused: what may be read may not be written for that.
func volumeWriteRefused(t *testing.T, s *suite) {
	r, base := s.allowed(t, Options{})
	p := r.user("acme")
	for _, source := range []string{"allowed", "allowed/hello", "allowed/sub/../../allowed", "secret"} {
		_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{{Source: base + "/" + source, Target: "/data", Write: true}}}})
		wantField(t, err, cove.Invalid, "volumes")
	}
}

func volumeShared(t *testing.T, s *suite) {
	r, base := s.allowed(t, Options{Shared: []cove.Volume{{Source: "secret", Target: "/shared"}}})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	same(t, "a file of a shared volume", r.sh(p, id, "cat /shared/hello"), "from the host\n")
	stats, err := p.Admin().Stats(r.ctx)
	r.must(err, "stats")
	same(t, "the shared volumes", stats.Volumes, []cove.Volume{{Source: filepath.Join(base, "secret"), Target: "/shared"}})
}

func volumeOutside(t *testing.T, s *suite) {
	r, base := s.allowed(t, Options{})
	p := r.user("acme")
	for name, to := range map[string]string{"allowed/link": filepath.Join(base, "secret"), "allowed/up": "..", "allowed/root": "/"} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, source := range map[string]string{
		"beside the list":     base + "/secret",
		"above the list":      base,
		"the root":            "/",
		"a common prefix":     base + "/allowed-evil",
		"dots":                base + "/allowed/../secret",
		"dots at the end":     base + "/allowed/..",
		"a link to elsewhere": base + "/allowed/link",
		"below such a link":   base + "/allowed/link/hello",
		"a link upwards":      base + "/allowed/up",
		"through the root":    base + "/allowed/root/etc",
		"relative":            "allowed",
		"empty":               "",
		"NUL":                 base + "/allowed\x00",
		"not there":           base + "/allowed/none",
	} {
		_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{{Source: source, Target: "/data"}}}})
		if cove.CodeOf(err) != cove.Invalid || detail(err, "field") != "volumes" {
			t.Errorf("%s: %v; want invalid for volumes", name, err)
		}
	}
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("refused volumes left %v", ids(list))
	}
}

func volumeBadTargets(t *testing.T, s *suite) {
	r, base := s.allowed(t, Options{})
	p := r.user("acme")
	source := filepath.Join(base, "allowed")
	for _, target := range []string{"/", "/proc", "/proc/self", "/sys", "/dev/shm", "/etc", "/etc/passwd", "/usr/bin", "/bin", "/lib64", "/run", "data", "/a/../etc", "", "/d\x00"} {
		_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{{Source: source, Target: target}}}})
		if cove.CodeOf(err) != cove.Invalid || detail(err, "field") != "volumes" {
			t.Errorf("target %q: %v; want invalid for volumes", target, err)
		}
	}
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{
		{Source: source, Target: "/data"}, {Source: source, Target: "/data"},
	}}})
	wantField(t, err, cove.Invalid, "volumes")
}
