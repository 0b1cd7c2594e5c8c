package docstest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	_ "github.com/cove-sandbox/cove/internal/cli" // a change to what the pages run runs them again
	"github.com/cove-sandbox/cove/internal/docstest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

const (
	root      = "../.."
	pageTime  = 3 * time.Minute
	graceTime = 20 * time.Second
)

// TestPages runs the documentation.
func TestPages(t *testing.T) {
	// What a page leaves behind becomes our child, so that it can be ended.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatalf("become the reaper of what pages start: %v", err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program.Cove(t), filepath.Join(bin, "cove")); err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			if name := filepath.Base(page); name != "README.md" && name != "quickstart.md" {
				tier.Full(t, "the README and the quick start run in the gate")
			}
			runPage(t, page, bin)
		})
	}
}

func runPage(t *testing.T, page, bin string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docstest.Blocks(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	env := engines(blocks)
	dir := t.TempDir()
	problem := play(t, bin, dir, blocks, env)
	for i, b := range blocks {
		t.Run("line "+strconv.Itoa(b.Line), func(t *testing.T) {
			if b.Skip != "" {
				if b.Needs != "" && slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), b.Needs) {
					t.Fatal(b.Skip)
				}
				t.Skip(b.Skip)
			}
			printed, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
			if err != nil {
				t.Fatalf("was not reached: a block before it failed")
			}
			if _, err := os.Stat(filepath.Join(dir, strconv.Itoa(i)+".done")); err != nil {
				t.Fatalf("failed (%v):\n%s\nand printed:\n%s", problem, b.Script, printed)
			}
			if b.Checks && !docstest.Match(b.Output, string(printed)) {
				t.Errorf("this block:\n%s\nshould print:\n%s\nand printed:\n%s", b.Script, b.Output, printed)
			}
		})
	}
}

// settings say where cove finds an engine, and where tests do.
var settings = map[string]struct{ cove, test string }{
	"docker": {"DOCKER_HOST", "COVE_TEST_DOCKER_HOST"},
	"duckdb": {"COVE_DUCKDB", "COVE_TEST_DUCKDB"},
	"gvisor": {"COVE_GVISOR_RUNSC", "COVE_TEST_RUNSC"},
	"sdks":   {sdks, "COVE_TEST_SDKS"},
}

// sdks names the folder with the SDKs of others to play alone: cove needs none.
const sdks = "SDKS"

// cluster is what scripts/cluster.sh starts.
const cluster = "cluster"

// lacksCluster says what of it is not here.
func lacksCluster() string {
	for _, program := range []string{"redis-server", "haproxy"} {
		if _, err := exec.LookPath(program); err != nil {
			if _, err := os.Stat("/usr/sbin/" + program); err != nil {
				return "it needs " + program + ", which is not installed"
			}
		}
	}
	return ""
}

// lookLikeCheckout links to what scripts/cluster.sh needs beside it.
func lookLikeCheckout(t *testing.T, work, bin string) {
	t.Helper()
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"bin": bin, "scripts": program.Input(t, filepath.Join(tree, "scripts")), "deploy": program.Input(t, filepath.Join(tree, "deploy"))} {
		if err := os.Symlink(at, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// engines returns the settings for the engines that the blocks need. Blocks whose
// engine is not here are marked to be skipped.
func engines(blocks []docstest.Block) (env []string) {
	for i, b := range blocks {
		if b.Needs == "" {
			continue
		}
		if b.Needs == cluster {
			blocks[i].Skip = lacksCluster()
			continue
		}
		s := settings[b.Needs]
		if at := os.Getenv(s.test); at != "" {
			env = append(env, s.cove+"="+at)
		} else {
			blocks[i].Skip = "it needs the engine of " + b.Needs + ", and " + s.test + " names none"
		}
	}
	return env
}

// play runs the blocks of a page in one bash. The output of block i is in the
// file i; the file i.done says that it succeeded.
func play(t *testing.T, bin, dir string, blocks []docstest.Block, env []string) error {
	t.Helper()
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for i, b := range blocks {
		if b.Skip == "" {
			_, _ = fmt.Fprintf(&script, "{\n%s\n} >%q/%d 2>&1\n: >%q/%d.done\n", b.Script, dir, i, dir, i)
		}
	}
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if slices.ContainsFunc(blocks, func(b docstest.Block) bool { return b.Needs == cluster && b.Skip == "" }) {
		lookLikeCheckout(t, work, bin)
	}
	path := bin + ":/usr/local/bin:/usr/bin:/bin"
	for _, e := range env {
		if trees, ok := strings.CutPrefix(e, sdks+"="); ok {
			path = filepath.Join(trees, "bin") + ":" + filepath.Join(trees, "py-new", "bin") + ":" + path
			_ = os.Symlink(filepath.Join(trees, "js-new", "node_modules"), filepath.Join(work, "node_modules")) // once for all blocks
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), pageTime, errors.New("the page takes too long"))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = work
	cmd.Env = append(env,
		"PATH="+path, "HOME="+home, "LANG=C.UTF-8", "TERM=dumb",
		"COVE_HOME="+filepath.Join(home, "cove"), // root's own would be the machine's
		"GOCOVERDIR="+os.Getenv("GOCOVERDIR"),
	)
	cmd.WaitDelay = graceTime
	out, err := cmd.CombinedOutput()
	endChildren(t)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if len(out) > 0 { // bash itself: the page does not parse
		t.Errorf("bash says: %s", out)
	}
	return err
}

// endChildren ends all that the page left running, such as a daemon that cove
// started on demand. Something that does not end when asked to is an error.
func endChildren(t *testing.T) {
	t.Helper()
	for range 16 {
		left := children(t)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGTERM)
			ended := make(chan struct{})
			go func() {
				_, _ = unix.Wait4(pid, nil, 0, nil)
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(graceTime):
				t.Errorf("process %d does not end on SIGTERM", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
				<-ended
			}
		}
	}
	t.Error("what the page left behind starts new processes for ever")
}

func children(t *testing.T) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (name) state ppid …; the name may hold anything.
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}
