package sdk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// installed is a fresh virtual environment with the wheel in it, and nothing else.
func installed(t *testing.T, settings ...string) (interpreter string) {
	t.Helper()
	dir, py := t.TempDir(), python(t)
	env := append(plain(), settings...)
	wheel := strings.TrimSpace(run(t, env, "python", py, "backend.py", dir))
	run(t, env, dir, py, "-m", "venv", "--without-pip", "venv")
	interpreter = filepath.Join(dir, "venv", "bin", "python")
	run(t, env, dir, withPip(t), "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-index", "--no-deps", wheel)
	return interpreter
}

// withPip is an interpreter that has pip.
func withPip(t *testing.T) string {
	t.Helper()
	for _, name := range []string{python(t), "/usr/bin/python3"} {
		const new = "import pip; assert tuple(map(int, pip.__version__.split('.')[:2])) >= (22, 3)"
		if exec.CommandContext(t.Context(), name, "-c", new).Run() == nil {
			return name
		}
	}
	providertest.Lacks(t, "python", "there is no pip 22.3 (Debian: python3-pip)")
	return ""
}

// TestPythonWheel installs the wheel that has cove inside, as a user does, and runs the
// lines of the pages there, in local mode: nothing else is installed or started.
func TestPythonWheel(t *testing.T) {
	tier.Full(t, "TestReadme installs the package from the tree")
	needProvider(t, "local")
	interpreter := installed(t, "COVE_WHEEL_BIN="+program.Cove(t))
	dir := shortDir(t)
	home := filepath.Join(dir, "home")
	t.Cleanup(func() { endDaemon(t, home) })
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "COVE_HOME=" + home, "COVE_DAEMON_IDLE=60", "POOL_SIZE=0", "SANDBOX_PROVIDER=local", "PYTHONUTF8=1", "LANG=C.UTF-8"}
	for _, page := range []string{"../README.md", "python/README.md", "../docs/python.md"} {
		for i, block := range blocks(t, page, "python") {
			path := filepath.Join(dir, "block.py")
			if err := os.WriteFile(path, []byte(block.code), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := run(t, env, dir, interpreter, path); block.output != "" && got != block.output {
				t.Errorf("%s, block %d printed\n%s\nand not\n%s", page, i+1, got, block.output)
			}
		}
	}
	example, err := filepath.Abs("python/examples/two_modes.py")
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, env, dir, interpreter, example, "local"); got != twoModes {
		t.Errorf("in local mode the example printed\n%s", got)
	}
}

// TestPythonPureWheel installs the wheel for other machines, which says what it lacks.
func TestPythonPureWheel(t *testing.T) {
	tier.Full(t, "TestReadme installs the package from the tree")
	interpreter := installed(t)
	env := []string{"PATH=/nowhere", "HOME=" + t.TempDir(), "COVE_HOME=" + filepath.Join(shortDir(t), "home")}
	got := run(t, env, t.TempDir(), interpreter, "-c", "import cove\ntry: cove.Sandbox.create()\nexcept cove.ConfigurationError as err: print(err.remedy)")
	if !strings.Contains(got, "set COVE_BIN") {
		t.Errorf("it says %q", got)
	}
	at := serve(t, "fake")
	code := "import cove; s = cove.Sandbox.create(); print(s.commands.run('echo remote').stdout, end='')"
	if got := run(t, append(env, at.env()...), t.TempDir(), interpreter, "-c", code); got != "remote\n" {
		t.Errorf("remote it printed %q", got)
	}
}

// codeBlock is code on a page, and what the page says that it prints.
type codeBlock struct{ code, output string }

// blocks returns the code in a language on a page.
func blocks(t *testing.T, page, language string) []codeBlock {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []codeBlock
	var now *string
	after := false // nothing but an empty line since the last block of code
	for line := range strings.Lines(string(text)) {
		switch {
		case now != nil && strings.HasPrefix(line, "```"):
			after = len(blocks) > 0 && now == &blocks[len(blocks)-1].code
			now = nil
		case now != nil:
			*now += line
		case line == "```"+language+"\n":
			blocks = append(blocks, codeBlock{})
			now = &blocks[len(blocks)-1].code
		case line == "```text\n" && after:
			now = &blocks[len(blocks)-1].output
		case line != "\n":
			after = false
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no %s", page, language)
	}
	return blocks
}

// endDaemon ends the server of a home that was started on demand, and waits for its end.
func endDaemon(t *testing.T, home string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "cove.lock"))
	var holder struct{ PID int }
	if err != nil || json.Unmarshal(text, &holder) != nil || holder.PID == 0 {
		return // none was started
	}
	fd, err := unix.PidfdOpen(holder.PID, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	if err := unix.PidfdSendSignal(fd, syscall.SIGTERM, nil, 0); err != nil {
		t.Logf("end the server of %s: %v", home, err)
		return
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000); n != 1 {
		t.Errorf("the server of %s does not end: %v", home, err)
	}
}
