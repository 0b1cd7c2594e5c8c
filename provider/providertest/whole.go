package providertest

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
)

// made runs a script that makes files, and skips the case where the programs of
// the sandbox cannot.
func (e *env) made(s cove.Sandbox, what, script string) {
	e.Helper()
	e.needs("programs that make "+what, e.sh(s, script).ExitCode == 0)
}

// moved puts the workspace of a sandbox into another one that has as much room. The
// archive may have no more than the workspace, and a little for each file.
func (e *env) moved(s, to cove.Sandbox) {
	e.Helper()
	r, err := s.Files().Archive(e.ctx(), ".")
	e.must(err, "archive")
	const most = int64(smallWorkspace + 64*cove.KiB)
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	e.must(err, "read the archive")
	e.check(r.Close(), "close the archive")
	if int64(len(b)) > most {
		e.Fatalf("the archive of a workspace of %s has more than %d bytes", smallWorkspace, most)
	}
	e.must(to.Files().Unpack(e.ctx(), ".", bytes.NewReader(b)), "unpack")
}

func archiveHardLinks(e *env) {
	a, b := e.smallSandbox(), e.smallSandbox()
	e.must(a.Files().Write(e.ctx(), "x", bytes.NewReader(pattern(700_000)), 0o644), "write")
	e.made(a, "hard links", "mkdir d && ln x d/y && ln x z && [ x -ef z ]")
	e.moved(a, b)
	e.prints(b, "same\n", "[ x -ef d/y ] && [ x -ef z ] && echo same")
	equal(e, e.read(b, "d/y") == string(pattern(700_000)), true, "whether the content is the same")
}

func archiveSparse(e *env) {
	a, b := e.smallSandbox(), e.smallSandbox()
	e.made(a, "holes", "truncate -s 8T sp && printf mid | dd of=sp bs=1 seek=5000000 conv=notrunc && truncate -s 4G empty && seq 1 9 > tail && truncate -s 1G tail")
	e.moved(a, b)
	const sizes = "stat -c '%n %s' sp empty tail; head -n 9 tail; dd if=sp bs=1 skip=5000000 count=3 2>/dev/null"
	e.prints(b, "sp 8796093022208\nempty 4294967296\ntail 1073741824\n1\n2\n3\n4\n5\n6\n7\n8\n9\nmid", sizes)
}

func archiveKinds(e *env) {
	a, b := e.smallSandbox(), e.smallSandbox()
	e.made(a, "pipes and special modes", `mkfifo -m 620 pipe && mkdir -m 1777 sticky && echo a > sticky/a && echo s > suid && chmod 6755 suid &&
		echo r > only && chmod 400 only && mkdir shut && echo c > shut/c && chmod 0 shut/c && chmod 0 shut && stat -c %a suid`)
	e.moved(a, b)
	const show = "stat -c '%n %F %a' pipe sticky suid only shut; chmod 700 shut; stat -c '%n %a %Y' shut/c only sticky; chmod 600 shut/c; cat sticky/a suid only shut/c"
	want := e.sh(a, show)
	e.prints(b, want.stdout, show)
	e.prints(b, "pipe\n", "[ -p pipe ] && echo pipe")
}

func archiveAttributes(e *env) {
	s := e.smallSandbox()
	const key, like = "SCHILY.xattr.user.cove", "SCHILY.xattr.user.list" // as long as an access control list
	long := strings.Repeat("x", 36)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	e.must(w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: map[string]string{key: "value", like: long}}), "write a header")
	e.must(w.Close(), "close the archive")
	e.must(s.Files().Unpack(e.ctx(), ".", &buf), "unpack")
	h, err := tar.NewReader(bytes.NewReader(e.archive(s, "."))).Next()
	e.must(err, "read the archive")
	value, ok := h.PAXRecords[key]
	e.needs("attributes of files", ok)
	equal(e, value, "value", "the attribute")
	equal(e, h.PAXRecords[like], long, "the longer attribute")
}
