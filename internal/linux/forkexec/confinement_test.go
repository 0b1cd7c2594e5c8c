package forkexec_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
)

// TestConfinement: what a program starts is bound as well, and the caller is not.
func TestConfinement(t *testing.T) {
	t.Parallel()
	if err := landlock.Probe(); err != nil {
		t.Skip(err)
	}
	fd, _, err := landlock.Open(landlock.Ruleset{
		Handled: landlock.ReadFile,
		Rules:   []landlock.Rule{{Path: "/usr", Allow: landlock.ReadFile}, {Path: "/etc/ld.so.cache", Allow: landlock.ReadFile}, {Path: "/dev", Allow: landlock.ReadFile}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	allow := syscall.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	confined := &forkexec.Confinement{Ruleset: fd, Filter: []syscall.SockFilter{allow}}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	status := func(k *forkexec.Confinement) int {
		n := int(null.Fd())
		pid, err := forkexec.Start(&forkexec.Command{
			Path: sh, Argv: []string{"sh", "-c", `sh -c "cat $0" || exit 3; exit 7`, secret}, Env: os.Environ(), Files: []int{n, n, n}, Confinement: k,
		})
		if err != nil {
			t.Fatal(err)
		}
		var st unix.WaitStatus
		if _, err := unix.Wait4(pid, &st, 0, nil); err != nil {
			t.Fatal(err)
		}
		return st.ExitStatus()
	}
	if got := status(nil); got != 7 {
		t.Errorf("without a confinement: exit status %d", got)
	}
	if got := status(confined); got != 3 {
		t.Errorf("in the confinement: exit status %d; want 3, since the file cannot be read", got)
	}
	if _, err := os.ReadFile(secret); err != nil {
		t.Errorf("the caller is confined: %v", err)
	}
}

// TestConfinementFails: a program never runs without the confinement that it should have.
func TestConfinementFails(t *testing.T) {
	t.Parallel()
	allow := []syscall.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	for _, c := range []struct {
		name  string
		with  forkexec.Confinement
		stage forkexec.Stage
	}{
		{"no ruleset", forkexec.Confinement{Ruleset: int(r.Fd()), Filter: allow}, forkexec.StageConfinement},
		{"no filter", forkexec.Confinement{Ruleset: int(r.Fd())}, forkexec.StageArguments},
		{"no descriptor", forkexec.Confinement{Ruleset: -1, Filter: allow}, forkexec.StageArguments},
	} {
		n := int(w.Fd())
		_, err := forkexec.Start(&forkexec.Command{Path: "/bin/true", Argv: []string{"true"}, Files: []int{n, n, n}, Confinement: &c.with})
		if e, ok := errors.AsType[*forkexec.Error](err); !ok || e.Stage != c.stage {
			t.Errorf("%s: %v; want an error of the stage %s", c.name, err, c.stage)
		}
	}
}
