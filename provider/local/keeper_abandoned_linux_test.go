package local_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// abandoned makes sandboxes with programs, of which one is paused and one has no holder
// yet, beside the control group of another provider, and waits to be killed.
func abandoned(args []string) error {
	ctx := context.Background()
	cfg := keeping(args[0])
	cfg.Users, cfg.Around = args[1], args[2]
	p, err := local.New(cfg)
	if err != nil {
		return err
	}
	var all found
	for i := range 3 {
		s, err := p.Create(ctx, cove.NewID(), cove.Spec{})
		if err != nil {
			return err
		}
		if _, err := s.Start(ctx, cove.Command{Argv: []string{"sleep", "1000"}, Keep: "sleeps"}); err != nil {
			return err
		}
		if pauser, ok := cove.As[cove.Pauser](s); ok && i == 0 {
			if err := pauser.Pause(ctx); err != nil {
				return err
			}
		}
		all.IDs, all.Processes = append(all.IDs, s.ID()), append(all.Processes, local.PID(s))
	}
	if _, err := p.Prepare(ctx, cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory}); err != nil {
		return err
	}
	_, _ = cgroup.Open(cgroup.Config{Name: "another-provider", Around: cfg.Around}) // where there are groups; it is never closed, as by a server that is killed
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// groupsOf returns the directories of control groups with a name in theirs, in all
// hierarchies.
func groupsOf(name string) (all []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, name) { // one may go meanwhile
			all = append(all, path)
		}
		return nil
	})
	return all
}

// TestKeeperOfARemovedDirectory: where the directory of a keeper was removed, nothing is
// left after the end of its server: no sandbox, no keeper and no control group of any
// hierarchy, also of those that had no holder.
func TestKeeperOfARemovedDirectory(t *testing.T) {
	root := t.TempDir()
	dir, around := filepath.Join(root, "home"), "cove-test-"+strings.ToLower(string(cove.NewID()))
	must(t, os.Mkdir(dir, 0o700))
	linuxtest.NoLeaks(t, local.GroupName(dir))
	in, hold, err := os.Pipe()
	must(t, err)
	out, say, err := os.Pipe()
	must(t, err)
	defer func() { _, _, _ = in.Close(), hold.Close(), out.Close() }()
	var errs strings.Builder
	cmd := linuxtest.Start(t, linuxtest.Child{Name: "abandoned", Args: []string{dir, filepath.Join(root, "users"), around}, Stdin: in}, say, &errs)
	_ = say.Close()
	var all found
	if err := json.NewDecoder(out).Decode(&all); err != nil {
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, errs.String())
	}
	pid := keeperPID(dir)
	if pid == 0 {
		t.Fatal("there is no keeper")
	}
	if before := groupsOf(local.GroupName(dir)); len(before) > 0 && len(groupsOf(around)) == 0 {
		t.Errorf("the groups are %v", before)
	}
	must(t, os.RemoveAll(dir))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	ends(t, "the keeper ends, whose directory is gone", func() bool { return gone(pid) })
	for _, pid := range all.Processes {
		if !gone(pid) {
			t.Errorf("agent %d is left", pid)
		}
	}
	if left := append(groupsOf(local.GroupName(dir)), groupsOf(around)...); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory is there again")
	}
}
