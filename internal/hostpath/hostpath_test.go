package hostpath_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/hostpath"
)

func TestText(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real home", filepath.Join(dir, "home")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	f := hostpath.New(home, "", "/", "relative")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"open " + home + "/archives/x: permission denied": "open (a path of the server): permission denied",
		home + ": no space":                                    "(a path of the server): no space",
		`"` + home + `/a" and "` + home + `/b".`:               `"(a path of the server)" and "(a path of the server)".`,
		"file://" + home + "/x is full.":                       "file://(a path of the server) is full.",
		filepath.Join(dir, "real home") + "/x is gone":         "(a path of the server) is gone",
		exe + " cannot run":                                    "(a path of the server) cannot run",
		"mkdir /sys/fs/cgroup/cove/s1: read-only file system":  "mkdir (a path of the server): read-only file system",
		"/tmp/cove-123/socket":                                 "(a path of the server)",
		`"/data/x" does not exist`:                             `"/data/x" does not exist`,
		"/workspace" + home + "/x does not exist":              "/workspace" + home + "/x does not exist",
		home + "s/x does not exist":                            home + "s/x does not exist",
		"use /workspace/a, /tmp or a path of read/write files": "use /workspace/a, /tmp or a path of read/write files",
		"": "",
	} {
		if got := f.Text(text); got != want {
			t.Errorf("%q became %q; want %q", text, got, want)
		}
	}
}

func TestAll(t *testing.T) {
	f := hostpath.New()
	for text, want := range map[string]string{
		"open /var/lib/x/y.db: disk full":              "open (a path of the server): disk full",
		"mount /proc/12/ns/mnt. It failed":             "mount (a path of the server). It failed",
		`the socket "/etc/x"`:                          `the socket "(a path of the server)"`,
		"/srv/a:/srv/b":                                "(a path of the server):(a path of the server)",
		"https://host:1/path/to and read/write":        "https://host:1/path/to and read/write",
		"/workspace/a and /home/user/b and /home/user": "/workspace/a and /home/user/b and /home/user",
		"/workspaces/a and /home/users/b":              "(a path of the server) and (a path of the server)",
		"/ and // and a/b":                             "/ and // and a/b",
	} {
		if got := f.All(text); got != want {
			t.Errorf("%q became %q; want %q", text, got, want)
		}
	}
}

func TestError(t *testing.T) {
	f := hostpath.New("/srv/cove")
	cause := &fs.PathError{Op: "open", Path: "/srv/cove/x", Err: syscall.EACCES}
	in := cove.Wrap(cove.Conflict, cause, "%s", cause).With("dirs", []string{"/srv/cove/x", "/data"}).With("n", 3).Remedy("make room in /srv/cove")
	out := f.Error(in)
	want := &cove.Error{Code: cove.Conflict, Message: "open (a path of the server): permission denied", Details: map[string]any{
		"dirs": []string{hostpath.Instead, "/data"}, "n": 3, "remedy": "make room in (a path of the server)",
	}, Err: in}
	got, ok := errors.AsType[*cove.Error](out)
	if !ok || got.Code != want.Code || got.Message != want.Message || !cmp.Equal(got.Details, want.Details) || got.Err != want.Err { //nolint:errorlint // the very same
		t.Errorf("it became %#v", out)
	}
	if in.Details["remedy"] != "make room in /srv/cove" {
		t.Error("the error itself was changed")
	}
	for _, code := range []cove.Code{cove.Unavailable, cove.Internal, cove.Exhausted} {
		if got := cove.MessageOf(f.Error(cove.Errorf(code, "see /etc/other"))); got != "see "+hostpath.Instead {
			t.Errorf("%s: %q", code, got)
		}
	}
	if got := cove.MessageOf(f.Error(cove.Errorf(cove.NotFound, `"/etc/other" does not exist`))); got != `"/etc/other" does not exist` {
		t.Errorf("%q", got)
	}
	full := cove.Errorf(cove.Exhausted, `"/tmp/x": the workspace is full`).Reason(cove.ReasonWorkspaceFull)
	if got := cove.MessageOf(f.Error(full)); got != full.Message {
		t.Errorf("%q", got)
	}
	if plain := errors.New("x"); f.Error(plain) != plain || f.Error(nil) != nil { //nolint:errorlint // the very same
		t.Error("another error was changed")
	}
}
