package policy_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

// TestRealBash runs what agent-bash lets through in the real shell, in an empty
// directory, with nothing in its PATH but stand-ins for the programs of the
// list. It fails if anything else is started, or anything with arguments that
// would have been refused. What agent-bash refuses is not run.
func TestRealBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	p := agentBash(t)
	lines := slices.Clone(honest)
	for _, e := range evasions {
		lines = append(lines, e.line)
	}
	theatre := newTheatre(t, bash)
	ran := 0
	for _, line := range lines {
		byPath := strings.Contains(line, "/bin/") // would start the real ones
		if byPath || explainLine(t, p, line).Decision.Effect != cove.Allow {
			continue
		}
		ran++
		for _, argv := range theatre.run(t, line) {
			if problem := offList(t, p, argv); problem != "" {
				t.Errorf("%s\n\tstarted %q: %s", line, argv, problem)
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d lines were run", ran)
	}
}

// theatre is a place to run lines in.
type theatre struct {
	bash, bin, startup, log string
}

func newTheatre(t *testing.T, bash string) theatre {
	t.Helper()
	dir := t.TempDir()
	th := theatre{bash: bash, bin: filepath.Join(dir, "bin"), startup: filepath.Join(dir, "startup"), log: filepath.Join(dir, "log")}
	if err := os.Mkdir(th.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// A stand-in writes its argv down, with bytes between and behind the
	// arguments that none of them holds.
	standIn := "#!" + bash + "\n" + `a=${0##*/}; for x; do a+=$'\x1f'$x; done; printf '%s\x1e' "$a" >> '` + th.log + "'\n"
	for _, name := range policy.AgentBash().Allow {
		if err := os.WriteFile(filepath.Join(th.bin, name), []byte(standIn), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A name that is not found is a program that would have been started.
	missing := "command_not_found_handle() { printf '%s\\x1e' \"$1\" >> '" + th.log + "'; return 127; }\n"
	if err := os.WriteFile(th.startup, []byte(missing), 0o600); err != nil {
		t.Fatal(err)
	}
	return th
}

// run returns the argv of every program that the line started.
func (th theatre) run(t *testing.T, line string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, th.bash, "-c", line)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + th.bin, "HOME=" + cmd.Dir, "BASH_ENV=" + th.startup}
	// A pipe for the output is open as long as anything that was started runs.
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 10 * time.Second
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("%s: %v", line, err)
	}
	if ctx.Err() != nil {
		t.Errorf("%s: still runs; it wrote %q", line, output.String())
	}
	log, err := os.ReadFile(th.log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(th.log); err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for record := range strings.SplitSeq(strings.TrimSuffix(string(log), "\x1e"), "\x1e") {
		all = append(all, strings.Split(record, "\x1f"))
	}
	return all
}
