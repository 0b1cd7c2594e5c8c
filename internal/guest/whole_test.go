//go:build linux

package guest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// strangeTree makes files that a program may make, of which a tar knows little.
const strangeTree = `mkdir in && cd in &&
head -c 600000 /dev/urandom > x && ln x y && ln -s x sl && ln sl sl2 && chmod 4755 x &&
truncate -s 8T sp && printf mid | dd of=sp bs=1 seek=1000000 conv=notrunc status=none && chmod 440 sp &&
truncate -s 1G hole && truncate -s 5 short && seq 1 9 > tail && truncate -s 100M tail && : > none &&
mkfifo -m 622 p && mkdir -m 1777 sticky && echo a > sticky/a && mkdir ro && echo b > ro/b && chmod 500 ro &&
mkdir shut && echo c > shut/c && chmod 0 shut/c && touch -d @1000000000.5 shut && chmod 0 shut`

const showTree = `find . -mindepth 1 \( -type d -printf '%p %y %m %T@\n' \) -o -printf '%p %y %m %s %n %T@ %l\n' 2>/dev/null | sort
[ x -ef y ] && md5sum < x; tail -n +1 tail | head -c 20 | md5sum; dd if=sp skip=1000000 count=3 bs=1 status=none; du -k sp hole tail
chmod 700 shut; stat -c '%n %a %Y' shut/c; chmod 600 shut/c; cat shut/c`

func archived(t *testing.T, c *guestAt, dir string) []byte {
	t.Helper()
	r, err := c.Files().Archive(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	whole, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestArchivesAreWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		if code, _, text := run(t, c, sh(strangeTree)); text != "" {
			t.Fatal(code, text)
		}
		whole := archived(t, c, "in")
		if len(whole) > 700_000 {
			t.Errorf("the archive has %d bytes", len(whole))
		}
		if err := c.Files().Unpack(t.Context(), "out", bytes.NewReader(whole)); err != nil {
			t.Fatal(err)
		}
		_, want, _ := run(t, c, sh("cd in; "+showTree))
		_, got, _ := run(t, c, sh("cd out; "+showTree))
		if d := cmp.Diff(want, got); d != "" || !strings.Contains(want, "./sp f 440 8796093022208 1") {
			t.Errorf("%s\n%s", want, d)
		}
		run(t, c, sh("chmod 700 in/ro out/ro"))
	})
}

// TestArchivesAndOtherPrograms: a tar program reads what we write, and we read
// what it writes.
func TestArchivesAndOtherPrograms(t *testing.T) {
	program, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("there is no tar program")
	}
	c := connect(t, place{namespaces: true})
	run(t, c, sh("mkdir in; cd in; echo text > a; ln a b; truncate -s 1T sp; printf mid | dd of=sp bs=1 seek=1000000 conv=notrunc status=none; chmod 4755 a"))
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "-xpf", "-", "-C", dir)
	cmd.Stdin = bytes.NewReader(archived(t, c, "in"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var a, b, sp unix.Stat_t
	for name, st := range map[string]*unix.Stat_t{"a": &a, "b": &b, "sp": &sp} {
		if err := unix.Stat(filepath.Join(dir, name), st); err != nil {
			t.Fatal(err)
		}
	}
	if a.Ino != b.Ino || a.Mode&0o7777 != 0o755 || sp.Size != 1<<40 || sp.Blocks > 1000 {
		t.Errorf("unpacked elsewhere: %+v, %+v, %+v", a, b, sp)
	}
	for _, format := range []string{"posix", "gnu"} {
		if err := os.Truncate(filepath.Join(dir, "sp"), 3<<20); err != nil {
			t.Fatal(err)
		}
		foreign, err := exec.CommandContext(t.Context(), program, "-cSf", "-", "--format="+format, "-C", dir, ".").Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Files().Unpack(t.Context(), format, bytes.NewReader(foreign)); err != nil {
			t.Fatal(format, err)
		}
		if _, out, _ := run(t, c, sh("cd "+format+"; [ a -ef b ] && cat a; stat -c %s sp; dd if=sp skip=1000000 count=3 bs=1 status=none; ls")); out != "text\n3145728\nmida\nb\nsp\n" {
			t.Errorf("%s: %q", format, out)
		}
	}
}

func TestAttributes(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		f := c.Files()
		attrs := map[string]string{"SCHILY.xattr.user.a": "value\n", "SCHILY.xattr.user.b": "\x00\xff", "COVE.xattr.user.c%3Dd": "e"}
		all := map[string]string{"SCHILY.xattr.security.evil": "x", "SCHILY.xattr.trusted.evil": "x"}
		maps.Copy(all, attrs)
		err := f.Unpack(t.Context(), "in", bytes.NewReader(pack(t,
			&tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 3, PAXRecords: all},
			&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755, PAXRecords: all})))
		if cove.CodeOf(err) == cove.Invalid && strings.Contains(cove.MessageOf(err), "not supported") {
			t.Skip("the file system has no attributes")
		}
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(bytes.NewReader(archived(t, c, "in")))
		n := 0
		for ; ; n++ {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for key := range h.PAXRecords {
				if !strings.Contains(key, "xattr") {
					delete(h.PAXRecords, key)
				}
			}
			if d := cmp.Diff(attrs, h.PAXRecords); d != "" {
				t.Errorf("%s: %s", h.Name, d)
			}
		}
		if n != 2 {
			t.Errorf("%d entries", n)
		}
		for name, bad := range map[string]map[string]string{
			"a long name": {"SCHILY.xattr.user." + strings.Repeat("n", 300): "x"}, "a long value": {"SCHILY.xattr.user.x": strings.Repeat("v", 70<<10)},
			"no mode": {"COVE.mode": "9"}, "a mode that is too large": {"COVE.mode": "100644"},
		} {
			wants(t, cove.Invalid, f.Unpack(t.Context(), "bad", bytes.NewReader(pack(t, &tar.Header{Name: "f", Typeflag: tar.TypeReg, PAXRecords: bad}))), name)
		}
	})
}
