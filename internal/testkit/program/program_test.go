package program_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

func TestMain(m *testing.M) { program.Main(m) }

func TestCove(t *testing.T) {
	path := program.Cove(t)
	if named := os.Getenv("COVE_TEST_COVE"); named != "" && path != named {
		t.Errorf("the program is %s, want %s, which COVE_TEST_COVE names", path, named)
	}
	if out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if again := program.Cove(t); again != path {
		t.Errorf("the second call returned %s, the first %s", again, path)
	}
}

func TestAgent(t *testing.T) {
	path := program.Agent(t)
	if named := os.Getenv("COVE_TEST_AGENT"); named != "" && path != named {
		t.Errorf("the agent is %s, want %s, which COVE_TEST_AGENT names", path, named)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("it is no executable: %v, %v", info, err)
	}
	if again := program.Agent(t); again != path {
		t.Errorf("the second call returned %s, the first %s", again, path)
	}
}

func TestVersion(t *testing.T) {
	tier.Full(t, "it builds cove; the gate has one version")
	path := program.Version(t, "v9.8.7")
	out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v9.8.7") {
		t.Errorf("%v\n%s", err, out)
	}
	if again := program.Version(t, "v9.8.7"); again != path {
		t.Errorf("the second call built %s, the first %s", again, path)
	}
	if err := program.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("Remove left the program: %v", err)
	}
}
