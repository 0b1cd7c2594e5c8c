package volume_test

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/alltest"
)

// TestSandboxesShareAFolder: what one sandbox makes in a folder, the next can read,
// change and remove, whichever provider made it, and all of it can be removed here.
func TestSandboxesShareAFolder(t *testing.T) {
	alltest.Each(t, func(t *testing.T, p cove.Provider) {
		d, id, path := folder(t)
		show := cove.Volume{Source: path, Target: "/data"}
		write := cove.Volume{Source: path, Target: "/data", Write: true}
		one := alltest.Sandbox(t, p, 128*cove.MiB, write)
		two := alltest.Sandbox(t, p, 128*cove.MiB, write)
		three := alltest.Sandbox(t, p, 128*cove.MiB, show)
		run(t, one, 0, "", "mkdir -p /data/d/e && echo one > /data/d/f && echo mine > /data/own && chmod 600 /data/own")
		run(t, two, 0, "one\nmine\n", "cat /data/d/f /data/own; echo two >> /data/d/f; mv /data/d/f /data/d/g; rm /data/own; rmdir /data/d/e")
		run(t, three, 0, "one\ntwo\n", "cat /data/d/g")
		run(t, three, 1, "", "touch /data/x 2> /dev/null")
		run(t, one, 0, "", "mkdir -p /data/shut/in; ln -s /etc /data/shut/link; chmod 0 /data/shut")

		info, err := os.Lstat(filepath.Join(path, "d", "g"))
		check(t, err)
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 1000 || st.Gid != 1000 {
			t.Errorf("what a sandbox made belongs to %+v", info.Sys())
		}
		f, err := d.Measure(t.Context(), id, plenty)
		check(t, err)
		if f.Files != 5 || f.Unseen {
			t.Errorf("the folder holds %+v, want 5 files", f)
		}
		for _, box := range []cove.Sandbox{one, two, three} {
			check(t, box.Destroy(t.Context()))
		}
		check(t, d.Remove(t.Context(), id))
	})
}

// run runs a line, and demands how it ends and what it prints.
func run(t *testing.T, box cove.Sandbox, code int, want, line string) {
	t.Helper()
	var out, errs bytes.Buffer
	p, err := box.Start(t.Context(), cove.Command{Argv: []string{"/bin/sh", "-c", line}, Dir: cove.WorkspacePath, Stdout: &out, Stderr: &errs})
	check(t, err)
	r, err := p.Wait(t.Context())
	check(t, err)
	if r.ExitCode != code || out.String() != want {
		t.Errorf("%s\n\tends with %d and prints %q, want %d and %q: %s", line, r.ExitCode, out.String(), code, want, errs.String())
	}
}
