package providertest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

func nameTests() []test {
	return []test{
		{"odd_names_work", oddNames},
		{"names_that_cannot_be", impossibleNames},
		{"dots_stay_inside", dotsStayInside},
		{"links_stay_inside", linksStayInside},
		{"writing_through_a_link_stays_inside", writeThroughLink},
		{"files_of_the_kernel", kernelFiles},
		{"home_is_the_workspace", homeIsWorkspace},
	}
}

// homeIsWorkspace: what was written for sandboxes whose files are in /home/user
// finds them there, in a root that is ours.
func homeIsWorkspace(e *env) {
	s := e.sandbox()
	e.needs("a link at "+cove.HomePath, e.sh(s, `[ -L "$1" ]`, cove.HomePath).ExitCode == 0)
	e.write(s, "here", "one")
	e.prints(s, "one", `cat "$1"`, cove.HomePath+"/here")
	e.prints(s, "", `cd "$1" && echo two >there && mkdir -p deep/down`, cove.HomePath)
	equal(e, e.read(s, "there"), "two\n", "what a program wrote in "+cove.HomePath)
	equal(e, e.read(s, cove.HomePath+"/here"), "one", "a file, read by its other name")
	e.write(s, cove.HomePath+"/deep/down/file", "three")
	e.prints(s, "three", `cat deep/down/file`)
	i, err := s.Files().Stat(e.ctx(), cove.HomePath)
	e.must(err, "stat")
	equal(e, i.Link, cove.WorkspacePath, "where "+cove.HomePath+" leads")
}

// oddities are names that are fine on Linux and break careless code.
func oddities() []string {
	return []string{
		"with space", " leading", "trailing ", "new\nline", "tab\there", "ü…\U0001F600", "-rf", "--", "*", "?[x]", `quo"te'`, `back\slash`,
		"$HOME", "`id`", "a;b", "...", ".hidden", "bad\xff\xfeutf8", "\x01control", strings.Repeat("n", 255),
	}
}

func oddNames(e *env) {
	s := e.sandbox()
	seen := map[string]bool{}
	for _, name := range oddities() {
		e.write(s, "odd/"+name, name)
		equal(e, e.read(s, "odd/"+name), name, "the content")
		e.prints(s, name, `cat -- "$1"`, "/workspace/odd/"+name)
		seen["/workspace/odd/"+name] = true
	}
	for i, err := range s.Files().List(e.ctx(), "odd", 1) {
		e.must(err, "list")
		if !seen[i.Path] {
			e.Errorf("List shows %q, which nobody made", i.Path)
		}
		delete(seen, i.Path)
	}
	for name := range seen {
		e.Errorf("List lacks %q", name)
	}
	for _, name := range oddities() {
		e.must(s.Files().Move(e.ctx(), "odd/"+name, "moved"), "move")
		e.must(s.Files().Remove(e.ctx(), "moved"), "remove")
	}
	e.prints(s, "", "ls -A odd")
}

func impossibleNames(e *env) {
	s := e.sandbox()
	e.write(s, "file", "x")
	f := s.Files()
	for what, name := range map[string]string{
		"an empty name":        "",
		"a name with a NUL":    "a\x00b",
		"a part of 256 bytes":  strings.Repeat("n", 256),
		"a path of 5000 bytes": strings.Repeat("d/", 2500) + "f",
		"a name below a file":  "file/below",
	} {
		_, err := f.Stat(e.ctx(), name)
		e.wants(cove.Invalid, err, "Stat of "+what)
		_, err = e.content(s, name, 0, 0)
		e.wants(cove.Invalid, err, "Read of "+what)
		e.wants(cove.Invalid, f.Write(e.ctx(), name, reader("x"), 0o644), "Write of "+what)
		e.wants(cove.Invalid, f.Mkdir(e.ctx(), name), "Mkdir of "+what)
		e.wants(cove.Invalid, f.Remove(e.ctx(), name), "Remove of "+what)
		e.wants(cove.Invalid, f.Move(e.ctx(), "file", name), "Move to "+what)
		for _, err := range f.List(e.ctx(), name, 1) {
			e.wants(cove.Invalid, err, "List of "+what)
		}
	}
	equal(e, e.read(s, "file"), "x", "the file")
}

// secret makes a file of the host that no sandbox may see.
func (e *env) secret() string {
	e.Helper()
	dir := e.TempDir()
	e.must(os.Chmod(dir, 0o755), "chmod")
	name := filepath.Join(dir, "secret")
	e.must(os.WriteFile(name, []byte("secret of the host"), 0o666), "write a host file")
	return name
}

// hidden demands that nothing leads to the host's file.
func (e *env) hidden(s cove.Sandbox, name string) {
	e.Helper()
	if text, err := e.content(s, name, 0, 0); err == nil {
		e.Errorf("Files reads %q from %s", text, name)
	}
	if r := e.sh(s, `cat -- "$1"`, name); r.ExitCode == 0 {
		e.Errorf("a program reads %q from %s", r.stdout, name)
	}
}

func dotsStayInside(e *env) {
	s := e.sandbox()
	secret := e.secret()
	up := strings.Repeat("../", 40)
	for _, name := range []string{secret, up + secret, "/workspace/" + up + secret, "a/" + up + secret, "./" + up + "." + secret, "/proc/self/root" + secret, "/proc/1/root" + secret} {
		e.hidden(s, name)
	}
	e.write(s, "deep/er/f", "inside")
	equal(e, e.read(s, "deep/../deep/./er/f"), "inside", "a name with dots that stays inside")
	equal(e, e.read(s, up+"workspace/deep/er/f"), "inside", "a name that climbs to the top and comes back")
	if err := s.Files().Write(e.ctx(), up+secret, reader("overwritten"), 0o644); err == nil {
		e.unharmed(secret)
	}
	e.unharmed(secret)
}

// unharmed demands that a host file has its content.
func (e *env) unharmed(name string) {
	e.Helper()
	b, err := os.ReadFile(name)
	e.must(err, "read the host file")
	equal(e, string(b), "secret of the host", "the host's file")
}

// kernelFiles: no call on files enters /proc or /sys. What is in /proc/self is about the
// process that looks, and that is not a program of the sandbox.
func kernelFiles(e *env) {
	s := e.sandbox()
	f := s.Files()
	e.write(s, "plain", "text")
	e.prints(s, "", `ln -s /proc/self/maps maps; ln -s /proc/self self; ln -s self again; ln -s /proc proc; ln -s / root`)
	calls := map[string]func(name string) error{
		"stat": func(name string) error { _, err := f.Stat(e.ctx(), name); return err },
		"read": func(name string) error { _, err := e.content(s, name, 0, 0); return err },
		"list": func(name string) error {
			for _, err := range f.List(e.ctx(), name, 2) {
				return err
			}
			return nil
		},
		"archive": func(name string) error {
			in, err := f.Archive(e.ctx(), name)
			if err == nil {
				_ = in.Close()
			}
			return err
		},
		"watch": func(name string) error {
			for _, err := range f.Watch(e.ctx(), name) {
				return err
			}
			return nil
		},
		"write":     func(name string) error { return f.Write(e.ctx(), name, reader("0"), 0o644) },
		"mkdir":     func(name string) error { return f.Mkdir(e.ctx(), name) },
		"move from": func(name string) error { return f.Move(e.ctx(), name, "moved") },
		"move to":   func(name string) error { return f.Move(e.ctx(), "plain", name) },
		"remove":    func(name string) error { return f.Remove(e.ctx(), name) },
		"tag":       func(name string) error { return f.Tag(e.ctx(), name, map[string]string{"a": "1"}) },
		"unpack":    func(name string) error { return f.Unpack(e.ctx(), name, reader("")) },
	}
	for _, name := range []string{"/proc/self/oom_score_adj", "/proc/1/environ", "self/maps", "again/exe", "proc/self/fd", "root/proc/self", "self/root/workspace/plain"} {
		for what, call := range calls {
			if err := call(name); cove.CodeOf(err) != cove.Denied {
				e.Errorf("%s %s: %v; want %s", what, name, err, cove.Denied)
			}
		}
	}
	for _, name := range []string{"maps", "self", "again"} { // these calls follow the last link
		for _, what := range []string{"read", "list", "archive", "watch"} {
			if err := calls[what](name); cove.CodeOf(err) != cove.Denied {
				e.Errorf("%s %s: %v; want %s", what, name, err, cove.Denied)
			}
		}
	}
	i, err := f.Stat(e.ctx(), "maps")
	e.must(err, "describe a link")
	equal(e, i.Link, "/proc/self/maps", "where the link leads")
	e.must(f.Remove(e.ctx(), "self"), "remove a link")
	equal(e, e.read(s, "plain"), "text", "a file beside the links")
}

func linksStayInside(e *env) {
	s := e.sandbox()
	secret := e.secret()
	up := strings.Repeat("../", 40)
	e.prints(s, "", `ln -s "$1" direct; ln -s "$2" climbing; ln -s "$3" dir; mkdir sub; ln -s ../direct sub/chain; ln -s / root`,
		secret, up+secret[1:], filepath.Dir(secret))
	for _, name := range []string{"direct", "climbing", "dir/secret", "sub/chain", "root" + secret, "root/" + up + secret} {
		e.hidden(s, name)
	}
	for i, err := range s.Files().List(e.ctx(), ".", cove.MaxListDepth) {
		e.must(err, "list")
		if strings.HasSuffix(i.Path, "/secret") {
			e.Errorf("List followed a link to %s", i.Path)
		}
	}
}

func writeThroughLink(e *env) {
	s := e.sandbox()
	secret := e.secret()
	e.prints(s, "", `ln -s "$1" file; ln -s "$2" dir`, secret, filepath.Dir(secret))
	f := s.Files()
	// Whether these succeed inside or fail does not matter; the host's file does.
	_ = f.Write(e.ctx(), "file", reader("overwritten"), 0o644)
	_ = f.Write(e.ctx(), "dir/secret", reader("overwritten"), 0o644)
	_ = f.Remove(e.ctx(), "dir/secret")
	e.sh(s, "echo overwritten > file; echo overwritten > dir/secret; rm -f dir/secret; mv file dir/secret")
	_ = f.Move(e.ctx(), "file", "dir/secret")
	_ = f.Remove(e.ctx(), "dir")
	e.unharmed(secret)
}
