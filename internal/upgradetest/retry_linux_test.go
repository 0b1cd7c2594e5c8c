package upgradetest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestAutoRetry kills a node under sessions of clients that open anew what is lost, in
// Go and in Python. They go on elsewhere, and the answer says so, once.
func TestAutoRetry(t *testing.T) {
	tier.Full(t, "package retry, and the scenarios in sdk, open anew what was lost")
	c := newCluster(t)
	n1, n2 := c.node("n1"), c.node("n2")
	undo := c.only("n2")
	retrying, err := client.New(n1.url(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = retrying.Close() })
	was := c.openOn(retrying, "n2", small(false))
	script := startScript(t, c, n1)
	if script != nil && c.record(n1, cove.ID(script.was)).Node != "n2" {
		t.Fatal("the sandbox of the program in Python is not on n2")
	}
	undo()
	n2.die(t)

	eventually(t, "a lost session is opened anew", func() error {
		x, err := retrying.Processes(was).Exec(t.Context(), cove.ExecRequest{Line: "echo it runs"})
		switch {
		case cove.ReasonOf(err) == cove.ReasonNodeAway || cove.ReasonOf(err) == cove.ReasonOutcomeUnknown: // to run it twice does no harm
			return err
		case err != nil || !x.Recreated || x.Session == was || string(x.Stdout.Data) != "it runs\n":
			t.Fatalf("%+v %v", x, err)
		}
		s, err := n1.client.Sessions().Get(t.Context(), x.Session)
		if err != nil || s.Node == "n2" {
			t.Errorf("what was opened anew: %+v %v", s, err)
		}
		return nil
	})
	if x, err := retrying.Processes(was).Exec(t.Context(), cove.ExecRequest{Line: "true"}); err != nil || x.Recreated || x.Session == was {
		t.Errorf("once more: %+v %v", x, err)
	}
	script.lost(t)
}

// script is a program in Python that holds a sandbox.
type script struct {
	in  io.WriteCloser
	out *bufio.Scanner
	err *strings.Builder
	was string
}

// told is what the program prints.
type told struct {
	Session   string `json:"session_id"`
	Stdout    string `json:"stdout"`
	Recreated bool   `json:"recreated"`
}

// startScript starts the program, and waits until it has its sandbox. Where
// there is no Python there is none.
func startScript(t *testing.T, c *cluster, at *node) *script {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; assert sys.version_info >= (3, 9)").Run()
	}
	if err != nil {
		t.Run("python", func(t *testing.T) { providertest.Lacks(t, "python", fmt.Sprintf("there is no Python 3.9: %v", err)) })
		return nil
	}
	src, err := filepath.Abs("../../sdk/python/src")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{err: &strings.Builder{}}
	cmd := exec.CommandContext(t.Context(), python, program.Input(t, "testdata/lost.py"))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "COVE_URL=" + at.url(), "COVE_API_KEY=" + c.key,
		"PYTHONPATH=" + program.Input(t, src), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore", // the version is none
	}
	cmd.Stderr = s.err
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	s.out = bufio.NewScanner(out)
	s.was = s.next(t).Session
	return s
}

// next is the next line that the program prints.
func (s *script) next(t *testing.T) (x told) {
	t.Helper()
	if !s.out.Scan() {
		t.Fatalf("the program in Python ended: %v\n%s", s.out.Err(), s.err)
	}
	if err := json.Unmarshal(s.out.Bytes(), &x); err != nil {
		t.Fatalf("%v\n%s", err, s.out.Text())
	}
	return x
}

// lost tells the program that its sandbox is, and wants it to go on.
func (s *script) lost(t *testing.T) {
	t.Helper()
	if s == nil {
		return
	}
	if _, err := io.WriteString(s.in, "lost\n"); err != nil {
		t.Fatal(err)
	}
	first, second := s.next(t), s.next(t)
	if !first.Recreated || first.Session == s.was || first.Stdout != "it runs\n" {
		t.Errorf("in Python, a session that was lost: %+v", first)
	}
	if second.Recreated || second.Session != first.Session {
		t.Errorf("in Python, once more: %+v", second)
	}
}
