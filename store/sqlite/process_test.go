package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// TestChild is no test: it is what the processes run that other tests start.
// It writes sessions until it has made enough, and prints the id of each.
func TestChild(t *testing.T) {
	if flag.NArg() != 2 {
		return
	}
	s := open(t, flag.Arg(0))
	var n int
	_, err := fmt.Sscan(flag.Arg(1), &n)
	check(t, err)
	for range n {
		rec := &cove.Session{ID: cove.NewID(), Tenant: "acme", State: cove.Running}
		check(t, s.PutSession(t.Context(), rec))
		_, err := s.AddUsage(t.Context(), "acme", cove.Consumption{CPU: 1})
		check(t, err)
		_, err = fmt.Fprintf(os.Stdout, "id %s\n", rec.ID)
		check(t, err)
	}
}

// child starts a process that writes n sessions.
func child(ctx context.Context, path string, n int) (*exec.Cmd, io.Reader, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "--", path, fmt.Sprint(n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	return cmd, out, errors.Join(err, cmd.Start())
}

// printed reads the ids that a child prints and calls each.
func printed(r io.Reader, each func(n int)) ([]cove.ID, error) {
	var ids []cove.ID
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var id string
		if _, err := fmt.Sscanf(lines.Text(), "id %s", &id); err != nil || len(id) != 26 {
			continue // what the test binary says, or a line cut short
		}
		ids = append(ids, cove.ID(id))
		each(len(ids))
	}
	return ids, lines.Err()
}

// TestKilled kills a process in the middle of its work, several times. What it
// was told to be kept is kept, and the file is sound.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	var want []cove.ID
	for range 3 {
		cmd, out, err := child(t.Context(), path, 1_000_000)
		check(t, err)
		ids, err := printed(out, func(n int) {
			if n == 50 {
				_ = cmd.Process.Kill()
			}
		})
		check(t, err)
		if cmd.Wait() == nil {
			t.Fatal("the process was not killed")
		}
		want = append(want, ids...)
	}
	s := open(t, path)
	for _, id := range want {
		if _, err := s.GetSession(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if len(want) < 150 {
		t.Errorf("only %d sessions", len(want))
	}
	if got, err := ask(t, s, "PRAGMA integrity_check"); err != nil || got != "ok" {
		t.Errorf("integrity: %q (%v)", got, err)
	}
}

// TestProcesses lets two processes and this one make and use one file.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cove.db")
	const n = 100
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			cmd, out, err := child(t.Context(), path, n)
			if err != nil {
				errs[i] = err
				return
			}
			_, err = printed(out, func(int) {})
			errs[i] = errors.Join(err, cmd.Wait())
		})
	}
	s, err := sqlite.Open(t.Context(), path)
	check(t, err)
	for range n {
		_, err := s.AddUsage(t.Context(), "acme", cove.Consumption{CPU: 1})
		check(t, err)
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	if sum, err := s.AddUsage(t.Context(), "acme", cove.Consumption{}); err != nil || sum.CPU != 3*n {
		t.Errorf("sum %d (%v)", sum.CPU, err)
	}
	check(t, s.Close())
}
