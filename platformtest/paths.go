package platformtest

import (
	"archive/tar"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func pathCases() []testCase {
	return []testCase{
		{"leave_the_workspace", leaveTheWorkspace},
		{"through_links", throughLinks},
		{"strange_names", strangeRoundTrip},
	}
}

// leaveTheWorkspace tries names that cannot be on every method of Files.
func leaveTheWorkspace(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	files := p.Files(id)
	r.write(p, id, "kept", "kept")
	tries := map[string]func(name string) error{
		"stat":    func(n string) error { return failure(files.Stat(r.ctx, n)) },
		"read":    func(n string) error { return shut(files.Read(r.ctx, n, 0, 0)) },
		"write":   func(n string) error { return files.Write(r.ctx, n, strings.NewReader("x"), 0o644) },
		"list":    func(n string) error { return first(files.List(r.ctx, n, 1)) },
		"mkdir":   func(n string) error { return files.Mkdir(r.ctx, n) },
		"move":    func(n string) error { return files.Move(r.ctx, n, "moved") },
		"move to": func(n string) error { return files.Move(r.ctx, "kept", n) },
		"remove":  func(n string) error { return files.Remove(r.ctx, n) },
		"archive": func(n string) error { return shut(files.Archive(r.ctx, n)) },
		"unpack":  func(n string) error { return files.Unpack(r.ctx, n, tarball(&tar.Header{Name: "x", Mode: 0o644})) },
		"watch":   func(n string) error { return first(files.Watch(r.ctx, n)) },
		"exec dir": func(n string) error {
			return failure(p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true", Dir: n}))
		},
	}
	names := []string{
		"../etc/passwd", "/etc/passwd", "/workspace/../etc/passwd", "/", "..", "a/../../x", "/workspacex", "a\x00b", strings.Repeat("a/", 3000),
	}
	for what, try := range tries {
		for _, name := range names {
			err := try(name)
			if what == "exec dir" && err == nil {
				continue // a program may start anywhere that its sandbox lets it
			}
			if cove.CodeOf(err) != cove.Invalid {
				t.Errorf("%s %.60q: %v; want invalid", what, name, err)
			}
		}
		if err := try(""); what != "exec dir" && cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s without a name: %v; want invalid", what, err)
		}
	}
	same(t, "the file after all attempts", r.read(p, id, "kept"), "kept")
}

// throughLinks: a link that points out of the workspace shows nothing of the
// host. What it points at belongs to the sandbox, or is not there.
func throughLinks(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	host := t.TempDir()
	e := r.exec(p, id, cove.ExecRequest{Argv: []string{"ln", "-s", host, "out"}})
	if e.ExitCode != 0 {
		t.Skipf("the sandbox has no ln: %s", e.Stderr.Data)
	}
	if err := p.Files(id).Write(r.ctx, "out/planted", strings.NewReader("x"), 0o644); err == nil {
		if len(dirNames(r, host)) > 0 {
			t.Error("a write through a link reached the host")
		}
	}
}
