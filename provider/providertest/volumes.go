package providertest

import (
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
)

func volumeTests() []test {
	return []test{
		{"read_only_unless_asked", volumeReadOnly},
		{"write_reaches_the_host", volumeWrite},
		{"link_in_a_volume_stays_inside", volumeLink},
		{"destroy_keeps_the_host_files", volumeSurvives},
		{"missing_source_is_invalid", volumeMissing},
		{"two_see_each_others_files", volumeTwice},
	}
}

// volume makes a directory of the host with one file, and a sandbox with it.
func (e *env) volume(write bool) (string, cove.Sandbox) {
	e.Helper()
	e.needs("volumes", e.caps.Volumes)
	dir := e.TempDir()
	e.must(os.Chmod(dir, 0o777), "chmod")
	e.must(os.WriteFile(filepath.Join(dir, "given"), []byte("from the host"), 0o644), "write a host file")
	return dir, e.sandbox(func(s *cove.Spec) { s.Volumes = []cove.Volume{{Source: dir, Target: "/data", Write: write}} })
}

func volumeReadOnly(e *env) {
	dir, s := e.volume(false)
	e.prints(s, "from the host", "cat /data/given")
	equal(e, e.read(s, "/data/given"), "from the host", "the file through Files")
	for _, script := range []string{"echo x > /data/new", "echo x >> /data/given", "rm /data/given", "mkdir /data/d", "mv /data/given /data/other"} {
		if r := e.sh(s, script); r.ExitCode == 0 {
			e.Errorf("%s succeeds in a read-only volume", script)
		}
	}
	e.wants(cove.Denied, s.Files().Write(e.ctx(), "/data/new", reader("x"), 0o644), "Files.Write to a read-only volume")
	e.wants(cove.Denied, s.Files().Remove(e.ctx(), "/data/given"), "Files.Remove from a read-only volume")
	entries, err := os.ReadDir(dir)
	e.must(err, "read the host directory")
	equal(e, len(entries), 1, "the number of host files")
}

func volumeWrite(e *env) {
	dir, s := e.volume(true)
	e.prints(s, "", "echo from inside > /data/made")
	e.write(s, "/data/sub/api", "from the API")
	for name, want := range map[string]string{"made": "from inside\n", "sub/api": "from the API"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		e.must(err, "read the host file "+name)
		equal(e, string(b), want, "the host file "+name)
	}
}

func volumeLink(e *env) {
	dir, s := e.volume(true)
	secret := filepath.Join(e.TempDir(), "secret")
	e.must(os.WriteFile(secret, []byte("secret of the host"), 0o644), "write a host file")
	e.must(os.Symlink(secret, filepath.Join(dir, "link")), "link")
	e.must(os.Symlink("../../../../../../../../.."+secret, filepath.Join(dir, "climb")), "link")
	for _, name := range []string{"/data/link", "/data/climb"} {
		if r := e.sh(s, `cat "$1"`, name); r.ExitCode == 0 {
			e.Errorf("%s leads a program out of the sandbox: %q", name, r.stdout)
		}
		if text, err := e.content(s, name, 0, 0); err == nil {
			e.Errorf("%s leads Files out of the sandbox: %q", name, text)
		}
	}
}

func volumeSurvives(e *env) {
	dir, s := e.volume(true)
	e.must(s.Destroy(e.ctx()), "destroy")
	_, err := os.Stat(filepath.Join(dir, "given"))
	e.check(err, "a host file after Destroy")
}

func volumeMissing(e *env) {
	e.needs("volumes", e.caps.Volumes)
	for _, write := range []bool{false, true} {
		_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) {
			s.Volumes = []cove.Volume{{Source: filepath.Join(e.TempDir(), "none"), Target: "/data", Write: write}}
		}))
		e.wants(cove.Invalid, err, "a volume that is not there")
	}
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

// volumeTwice: one sandbox writes what another reads, under another name.
func volumeTwice(e *env) {
	dir, s := e.volume(true)
	other := e.sandbox(func(s *cove.Spec) {
		s.Volumes = []cove.Volume{{Source: dir, Target: "/mnt/in/side"}, {Source: dir, Target: "/srv/again", Write: true}}
	})
	e.write(s, "/data/word", "hello")
	e.prints(other, "hellohello", "cat /mnt/in/side/word /srv/again/word")
	if r := e.sh(other, "echo x > /mnt/in/side/word"); r.ExitCode == 0 {
		e.Errorf("what is read-only under one name was written to under it")
	}
}
