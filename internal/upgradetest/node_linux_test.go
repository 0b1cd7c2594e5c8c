package upgradetest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/client"
)

// node is a server of the cluster.
type node struct {
	name    string
	version string // that it was last started with
	home    string
	addr    string
	env     []string
	log     string

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has

	client *client.Client // for what is asked there; nothing is tried again
}

func (n *node) url() string { return "http://" + n.addr }

// start starts the node's server and waits until it is ready.
func (n *node) start(t *testing.T, version string) {
	t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()                   // the server has its own
	cmd := exec.Command(executable(t, version), "serve") // without a context: it ends by signals, which are what this is about
	cmd.Env, cmd.Stdout, cmd.Stderr = n.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.version, n.cmd, n.ended = version, cmd, make(chan struct{})
	go func(ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}(n.ended)
	n.await(t)
}

func (n *node) await(t *testing.T) {
	t.Helper()
	eventually(t, n.name+" is ready", func() error {
		select {
		case <-n.ended:
			t.Fatalf("%s ended at its start:\n%s", n.name, n.lastWords())
		default:
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url()+"/ready", http.NoBody)
		if err != nil {
			return err
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode == http.StatusOK {
			return err
		}
		return errors.New(resp.Status)
	})
}

// lastWords is the end of its log.
func (n *node) lastWords() string {
	text, _ := os.ReadFile(n.log) // then there is nothing to show
	const most = 4000
	return string(text[max(0, len(text)-most):])
}

// stop ends the server in order. Its keeper goes on.
func (n *node) stop(t *testing.T) {
	t.Helper()
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-n.ended:
	case <-time.After(patience):
		t.Errorf("%s does not end when it is told to:\n%s", n.name, n.lastWords())
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
	n.cmd = nil
}

// die ends the server and all that it left running, as a power failure does.
func (n *node) die(t *testing.T) {
	t.Helper()
	if n.cmd != nil {
		_ = n.cmd.Process.Kill() // it may have ended
		<-n.ended
		n.cmd = nil
	}
	eventually(t, "the keepers of "+n.name+" are gone", func() error {
		left := n.keepers()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		if len(left) > 0 {
			return fmt.Errorf("%d go on", left)
		}
		return nil
	})
}

// keepers are the processes that hold the node's sandboxes: they name its home.
func (n *node) keepers() []int {
	var all []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(line, []byte("cove-keeper")) || !bytes.Contains(line, []byte(n.home+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// removeGroups removes the control groups of its sandboxes, in which nothing runs.
func (n *node) removeGroups() error {
	sum := sha256.Sum256([]byte(filepath.Join(n.home, "providers", "local")))
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/cove-" + hex.EncodeToString(sum[:6]))
	top, _ := filepath.Glob("/sys/fs/cgroup/cove-" + hex.EncodeToString(sum[:6]))
	for _, dir := range append(tops, top...) {
		var inside []string
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // what goes meanwhile is what is wanted
			if err == nil && entry.IsDir() {
				inside = append(inside, path)
			}
			return nil
		})
		slices.Reverse(inside)
		for _, path := range inside {
			if err := syscall.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove %s: %w", path, err)
			}
		}
	}
	return nil
}

// patience is how long anything may take on a machine that does much else.
const patience = time.Minute

// eventually waits until something is so, and fails the test where that never comes.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not so after %s: %s: %v", patience, what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
