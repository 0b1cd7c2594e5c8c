package local_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// shows makes a sandbox with volumes.
func shows(t *testing.T, p cove.Provider, list ...cove.Volume) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: list})
	must(t, err)
	return s
}

// output is what a script in a sandbox prints, errors too.
func output(t *testing.T, s cove.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	must(t, err)
	_, err = p.Wait(t.Context())
	must(t, err)
	return out.String()
}

// prints demands what scripts print.
func prints(t *testing.T, s cove.Sandbox, want map[string]string) {
	t.Helper()
	for script, text := range want {
		if got := output(t, s, script); got != text {
			t.Errorf("%s\nprints %q, want %q", script, got, text)
		}
	}
}

// offered makes directories (with a slash at the end) and files with their names in
// them, open to all.
func offered(t *testing.T, names ...string) string {
	t.Helper()
	top := t.TempDir()
	must(t, os.Chmod(top, 0o777))
	for _, n := range names {
		at := filepath.Join(top, n)
		if strings.HasSuffix(n, "/") {
			must(t, os.MkdirAll(at, 0o777))
			must(t, os.Chmod(at, 0o777))
			continue
		}
		must(t, os.WriteFile(at, []byte(n), 0o666))
		must(t, os.Chmod(at, 0o666))
	}
	return top
}

func TestVolumeTargets(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	dir := offered(t, "in/", "f", "in/g")
	s := shows(t, p,
		cove.Volume{Source: dir, Target: "/a/b/c"}, cove.Volume{Source: dir + "/f", Target: "/a/file"},
		cove.Volume{Source: dir + "/f", Target: "/a/b/c/in/g", Write: true}, // in another, where it is
		cove.Volume{Source: dir + "/in", Target: "/mnt/x"}, cove.Volume{Source: dir + "/in", Target: "/tmp/deep/er"},
		cove.Volume{Source: dir + "/f", Target: "/tmp/f"}, cove.Volume{Source: dir + "/in", Target: "/home"},
		cove.Volume{Source: dir, Target: "/var/lib/x", Write: true},
	)
	prints(t, s, map[string]string{
		"cat /a/b/c/f /a/file /mnt/x/g /tmp/deep/er/g /tmp/f /home/g": "ffin/gin/gfin/g",
		"cat /a/b/c/in/g":                         "f",
		"printf f > /a/b/c/in/g && echo written":  "written\n",
		"ls -A /a /a/b /home /srv":                "/a:\nb\nfile\n\n/a/b:\nc\n\n/home:\ng\n\n/srv:\n",
		"readlink /var/run /var/tmp":              "/run\n/tmp\n",
		"ls / | tr '\\n' ' ' | grep -c 'a .*usr'": "1\n",
		"mkdir /x 2> /dev/null || echo no":        "no\n",
		"touch /a/x 2> /dev/null || echo no":      "no\n",
		"rm /tmp/f 2> /dev/null || echo no":       "no\n",
		"echo x > /tmp/y && cat /tmp/y":           "x\n",
		"mkdir /var/lib/x/made && rmdir /var/lib/x/made && touch /var/lib/x/t && rm /var/lib/x/t && echo yes": "yes\n",
		"echo x > /dev/null; head -c 2 /dev/zero | wc -c; test -e /proc/self && id -u":                        "2\n1000\n",
		"python3 -c 'import os; print(os.getuid())'":                                                          "1000\n",
	})
	says(t, s)
	must(t, s.Destroy(t.Context()))
	if text, err := os.ReadFile(dir + "/f"); err != nil || string(text) != "f" {
		t.Errorf("the file on the host is %q, %v", text, err)
	}
	for target, source := range map[string]string{
		"/var/run/x": dir, "/var/tmp/x": dir, "/var/tmp": dir, "/usr/x": dir, "/etc/passwd": dir + "/f",
		"/tmp": dir, "/tmp/.cove": dir, "/tmp/.cove/ca.pem": dir + "/f",
	} {
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: source, Target: target}}})
		wants(t, cove.Invalid, err, "target "+target)
	}
	// Nothing is made on the host.
	_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{
		{Source: dir, Target: "/a", Write: true}, {Source: dir, Target: "/a/none"},
	}})
	wants(t, cove.Invalid, err, "a target that is not there")
	must(t, os.Symlink("/tmp", dir+"/link"))
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{
		{Source: dir, Target: "/a", Write: true}, {Source: dir, Target: "/a/link"},
	}})
	wants(t, cove.Invalid, err, "a target that is a link")
	var many []cove.Volume
	for i := range 40 {
		many = append(many, cove.Volume{Source: dir, Target: "/v" + strings.Repeat("x", i)})
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: many})
	wants(t, cove.Invalid, err, "too many")
	says(t, shows(t, p, many[:32]...))
	if got := ids(t, p); len(got) != 1 {
		t.Errorf("listed are %v", got)
	}
}

func TestVolumeSources(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	dir := offered(t, "in/", "f")
	must(t, os.Symlink(dir+"/in", dir+"/link"))
	must(t, unix.Mkfifo(dir+"/pipe", 0o666))
	for source, want := range map[string]string{
		"/none": "no such", "/f/x": "no such", "/link": "symbolic link", "/link/x": "symbolic link", "/pipe": "neither",
	} {
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: dir + source, Target: "/data"}}})
		wants(t, cove.Invalid, err, source)
		if !strings.Contains(cove.MessageOf(err), want) || !strings.Contains(cove.MessageOf(err), source) {
			t.Errorf("%s: %v", source, err)
		}
	}
	if os.Getuid() != 0 {
		must(t, os.Chmod(dir+"/in", 0))
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: dir + "/in/x", Target: "/data"}}})
		wants(t, cove.Invalid, err, "what we may not open")
		must(t, os.Chmod(dir+"/in", 0o700))
	}
	if got := ids(t, p); len(got) != 0 {
		t.Errorf("listed are %v", got)
	}
}

// TestVolumeReadOnly: there is no way to write through it.
func TestVolumeReadOnly(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	dir, other := offered(t, "in/", "f"), offered(t, "g")
	must(t, os.Symlink("/rw/g", dir+"/across"))
	must(t, os.Symlink("/ro/f", other+"/across"))
	must(t, os.Symlink("/etc/hostname", dir+"/away"))
	s := shows(t, p, cove.Volume{Source: dir, Target: "/ro"}, cove.Volume{Source: other, Target: "/rw", Write: true})
	for _, script := range []string{
		"echo x > /ro/f", "echo x > /proc/self/fd/3 3< /ro/f", "exec 3< /ro/f; echo x > /dev/fd/3", "cd /ro/in && echo x > y",
		"echo x > /rw/across", "ln /ro/f /workspace/f && echo x > /workspace/f", "ln /ro/f /rw/f", "mv /ro/f /rw/x", "mv /rw/g /ro/x",
		"chmod 600 /ro/f", "touch /ro/f", "truncate -s 0 /ro/f", "mkdir /ro/d", "rmdir /ro/in", "mount -o remount,rw /ro", "mount --bind /rw /ro",
		"umount /ro", `python3 -c 'import os; os.setxattr("/ro/f", "user.x", b"y")'`,
	} {
		if got := output(t, s, "("+script+") 2> /dev/null && echo done"); strings.Contains(got, "done") {
			t.Errorf("%s: it could", script)
		}
	}
	prints(t, s, map[string]string{
		`python3 -c 'import os; os.setxattr("/rw/g", "user.x", b"y")' && echo done`: "done\n", // so it is not for want of the program
		"cat /ro/away": "sandbox\n", "cat /rw/across": "f", "cat /ro/across": "g",
	})
	prints(t, s, map[string]string{"echo x > /ro/across && cat /rw/g": "x\n"}) // that one may be written to
	if text, err := os.ReadFile(dir + "/f"); err != nil || string(text) != "f" {
		t.Errorf("the file on the host is %q, %v", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("in the directory are %v, %v", entries, err)
	}
}

func TestVolumeOfSpare(t *testing.T) {
	p := provider(t, config(t.TempDir()))
	spare, err := p.Prepare(t.Context(), cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	must(t, err)
	s, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: offered(t, "f"), Target: "/data"}}})
	must(t, err)
	prints(t, s, map[string]string{"cat /data/f": "f"})
	if got := ids(t, p); len(got) != 1 {
		t.Errorf("listed are %v", got)
	}
}

// TestVolumeUsers: who is who in a volume.
func TestVolumeUsers(t *testing.T) {
	linuxtest.NeedRoot(t)
	for _, once := range []bool{false, true} {
		cfg := config(t.TempDir())
		cfg.Once = once
		p := provider(t, cfg)
		dir := offered(t, "f", "secret")
		const owner = 4321
		must(t, os.Chown(dir, owner, owner))
		must(t, os.Chmod(dir, 0o755))
		must(t, os.Chown(dir+"/f", owner, owner))
		must(t, os.Chmod(dir+"/f", 0o600))
		must(t, os.Chmod(dir+"/secret", 0o600)) // of root
		s := shows(t, p, cove.Volume{Source: dir, Target: "/rw", Write: true}, cove.Volume{Source: dir, Target: "/ro"})
		prints(t, s, map[string]string{
			"cat /rw/f; stat -c %u:%g /rw /rw/f":            "f1000:1000\n1000:1000\n",
			"cat /ro/f 2> /dev/null || echo no":             "no\n",
			"cat /rw/secret 2> /dev/null || echo no":        "no\n",
			"(echo x > /rw/secret) 2> /dev/null || echo no": "no\n",
			"echo x > /rw/new && chmod 4755 /rw/new":        "",
			"chown 0 /rw/new 2> /dev/null || echo no":       "no\n",
			"stat -c %u /ro/f":                              "65534\n",
		})
		owned(t, dir+"/new", owner)
		must(t, os.Chown(dir, 0, 0))
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: dir, Target: "/rw", Write: true}}})
		wants(t, cove.Invalid, err, "what only root may write to")
		must(t, os.Chmod(dir, 0o777))
		s = shows(t, p, cove.Volume{Source: dir, Target: "/rw", Write: true})
		prints(t, s, map[string]string{"echo x > /rw/nobodys; cat /rw/secret 2> /dev/null || echo no": "no\n"})
		owned(t, dir+"/nobodys", 65534)
		must(t, os.Chown(dir, 3_000_000_000, 0))
		_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: dir, Target: "/rw", Write: true}}})
		wants(t, cove.Unsupported, err, "a user that cannot be mapped")
	}
}

func owned(t *testing.T, path string, by uint32) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	if st.Uid != by || st.Gid != by {
		t.Errorf("%s belongs to %d:%d, want %d", path, st.Uid, st.Gid, by)
	}
}

// TestVolumeMounts: what is mounted in a volume, and what is in it, is as
// harmless as the rest.
func TestVolumeMounts(t *testing.T) {
	linuxtest.NeedRoot(t)
	for _, once := range []bool{false, true} {
		cfg := config(t.TempDir())
		cfg.Once = once
		dir := offered(t, "in/", "later/")
		must(t, unix.Mount("tmpfs", dir+"/in", "tmpfs", 0, "mode=777"))
		t.Cleanup(func() { _ = unix.Unmount(dir+"/in", unix.MNT_DETACH) })
		must(t, os.WriteFile(dir+"/in/f", []byte("below"), 0o600))
		must(t, os.Chmod(dir+"/in/f", 0o666))
		must(t, unix.Mknod(dir+"/in/null", unix.S_IFCHR|0o666, 1<<8|3))
		must(t, os.Chmod(dir+"/in/null", 0o666))
		program, err := os.ReadFile("/usr/bin/id")
		must(t, err)
		must(t, os.WriteFile(dir+"/in/id", program, 0o755))
		must(t, os.Chmod(dir+"/in/id", 0o755|os.ModeSetuid))
		p := provider(t, cfg)
		s := shows(t, p, cove.Volume{Source: dir, Target: "/ro"}, cove.Volume{Source: dir, Target: "/rw", Write: true})
		must(t, unix.Mount("tmpfs", dir+"/later", "tmpfs", 0, "mode=777"))
		must(t, os.WriteFile(dir+"/later/f", nil, 0o600))
		for script, want := range map[string]string{
			"cat /ro/in/f": "below", "echo x 2> /dev/null > /ro/in/f || echo no": "no\n", "echo x 2>/dev/null > /ro/in/null || echo no": "no\n",
			"echo x 2> /dev/null > /rw/in/null || echo no": "no\n", "/rw/in/id -u; /ro/in/id -u": "1000\n1000\n",
			"ls /ro/later /rw/later": "/ro/later:\n\n/rw/later:\n",
		} {
			if got := output(t, s, script); got != want {
				t.Errorf("%s\nprints %q, want %q", script, got, want)
			}
		}
		must(t, unix.Unmount(dir+"/later", unix.MNT_DETACH))
		must(t, s.Destroy(t.Context()))
		must(t, unix.Unmount(dir+"/in", unix.MNT_DETACH))
		must(t, unix.Mount("ramfs", dir+"/in", "ramfs", 0, "mode=777"))
		_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: dir, Target: "/rw", Write: true}}})
		if once {
			wants(t, cove.Unsupported, err, "a file system that cannot map users")
		} else if err == nil {
			// The spawner sees what is mounted only where the host shares it.
			must(t, p.Remove(t.Context(), ids(t, p)[0]))
		}
		must(t, p.Close())
		must(t, unix.Unmount(dir+"/in", unix.MNT_DETACH))
	}
}
