package main

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

// counting is a program that counts without an end, on its output and into a
// file. Its last word tells it from other tests' programs.
const counting = `i=0; while :; do i=$((i+1)); echo $i; echo $i >>counted; [ $((i % 50)) != 0 ] || sleep 0.1; done; : `

// living is a session that counts.
type living struct {
	id   cove.ID
	pid  cove.PID
	seen int64 // bytes of its output that somebody read before the server was killed
}

// A server is killed while twenty sessions write. After a restart all of them
// answer, and not a byte is lost. Then what keeps them is killed, and after the
// next start nothing is left.
func TestSessionsOutliveTheServer(t *testing.T) {
	needLocal(t)
	home := filepath.Join(t.TempDir(), "home")
	end := server(t, home, "local")
	c := connect(t, home)
	var all []*living
	for range 20 {
		all = append(all, begin(t, c, home))
	}
	for _, l := range all {
		l.seen = l.count(t, c, 0, 60)
	}
	end(syscall.SIGKILL)

	end = server(t, home, "local")
	c = connect(t, home)
	for _, l := range all {
		l.count(t, c, 0, 200)      // from the first byte on
		l.count(t, c, l.seen, 200) // and from where somebody was
		l.finish(t, c)
	}
	table := listed(t, home)
	for _, l := range all {
		if !strings.Contains(table, string(l.id)) {
			t.Errorf("%s is not listed:\n%s", l.id, table)
		}
	}

	again := begin(t, c, home)
	keeper := keeperOf(t, home)
	if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !eventually(30*time.Second, func() bool {
		_, err := c.Processes(again.id).Exec(t.Context(), cove.ExecRequest{Line: "true"})
		return cove.ReasonOf(err) == cove.ReasonNodeLost
	}) {
		t.Error("a session whose keeper is gone does not say that it was lost")
	}
	end(syscall.SIGKILL)
	end = server(t, home, "local")
	if table := listed(t, home); strings.Contains(table, string(again.id)) {
		t.Errorf("a lost session is listed:\n%s", table)
	}
	end(syscall.SIGTERM)
	nothingLeft(t, home, append(all, again))
}

// begin opens a session and lets it count.
func begin(t *testing.T, c *client.Client, home string) *living {
	t.Helper()
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: 64 * cove.MiB}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: counting + markOf(home)})
	if err != nil {
		t.Fatal(err)
	}
	return &living{id: s.ID, pid: p.PID}
}

// markOf is a word that only this run of the test has: the name of its directory.
func markOf(home string) string { return filepath.Base(filepath.Dir(filepath.Dir(home))) }

// count follows the counting from an offset until it has seen so many numbers,
// each one more than the one before, and returns where it stopped.
func (l *living) count(t *testing.T, c *client.Client, offset int64, enough int) int64 {
	t.Helper()
	r, w := io.Pipe()
	defer func() { _ = r.Close() }()
	go func() {
		for chunk, err := range c.Processes(l.id).Connect(t.Context(), l.pid, offset) {
			if err == nil {
				_, err = w.Write(chunk.Data)
			}
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	at, last := offset, int64(0)
	for n := range enough {
		if !lines.Scan() {
			t.Fatalf("%s: the output ends after %d numbers: %v", l.id, n, lines.Err())
		}
		at += int64(len(lines.Bytes())) + 1
		number, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil || n == 0 && offset == 0 && number != 1 || n > 0 && number != last+1 {
			t.Fatalf("%s: %q comes after %d: %v", l.id, lines.Text(), last, err)
		}
		last = number
	}
	return at
}

// finish ends the counting, and demands that the file has no gap either.
func (l *living) finish(t *testing.T, c *client.Client) {
	t.Helper()
	if err := c.Processes(l.id).Signal(t.Context(), l.pid, "KILL"); err != nil {
		t.Fatal(err)
	}
	if x, err := c.Processes(l.id).Wait(t.Context(), l.pid); err != nil || x.Signal != "KILL" {
		t.Fatalf("%s ended with %v, %v", l.id, x, err)
	}
	// The last line may be cut where the program was killed.
	x, err := c.Processes(l.id).Exec(t.Context(), cove.ExecRequest{Line: `head -n -1 counted | awk 'NR != $1 { print "gap at " NR; exit 1 }'`})
	if err != nil || x.ExitCode != 0 {
		t.Errorf("%s: %v %+v", l.id, err, x)
	}
}

// listed is what cove sandbox ls prints.
func listed(t *testing.T, home string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cove", "sandbox", "ls", "--json")
	cmd.Env = append(os.Environ(), "COVE_HOME="+home)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cove sandbox ls: %v", err)
	}
	return string(out)
}

// processes calls see with the words of every process of this machine that we
// may look at.
func processes(t *testing.T, see func(pid int, argv [][]byte)) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil {
			see(pid, bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0}))
		}
	}
}

// keeperOf returns the process that keeps the sandboxes of a COVE_HOME.
func keeperOf(t *testing.T, home string) int {
	t.Helper()
	var found []int
	processes(t, func(pid int, argv [][]byte) {
		if string(argv[0]) == "cove-keeper" && slices.ContainsFunc(argv[1:], func(a []byte) bool { return bytes.HasPrefix(a, []byte(home)) }) {
			found = append(found, pid)
		}
	})
	if len(found) != 1 {
		t.Fatalf("the keepers are %v", found)
	}
	return found[0]
}

// nothingLeft demands that nothing of these sessions is on the machine: no
// program, no control group, no keeper.
func nothingLeft(t *testing.T, home string, all []*living) {
	t.Helper()
	mark := []byte(markOf(home))
	if !eventually(10*time.Second, func() bool {
		left := false
		processes(t, func(_ int, argv [][]byte) { left = left || bytes.Contains(bytes.Join(argv, []byte{0}), mark) })
		return !left
	}) {
		processes(t, func(pid int, argv [][]byte) {
			if bytes.Contains(bytes.Join(argv, []byte{0}), mark) {
				t.Errorf("process %d is left: %q", pid, argv)
			}
		})
	}
	// What went while we looked is not there.
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() && slices.ContainsFunc(all, func(l *living) bool { return d.Name() == string(l.id) }) {
			t.Errorf("the control group %s is left", path)
		}
		return nil
	})
}
