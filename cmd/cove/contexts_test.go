package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestContextsOutliveTheServer kills a server while code runs, and ends the next one
// properly while code runs. Variables are there afterwards, and the code that was under
// way has its result and all that it wrote.
func TestContextsOutliveTheServer(t *testing.T) {
	needLocal(t)
	contextsOutlive(t, "cove", "local")
}

// TestContextsOutliveTheServerElsewhere is the same where agents hold the streams of
// programs.
func TestContextsOutliveTheServerElsewhere(t *testing.T) {
	tier.Full(t, "TestContextsOutliveTheServer is the same with local")
	for provider, setting := range map[string][2]string{
		"gvisor": {"COVE_TEST_RUNSC", "COVE_GVISOR_RUNSC"},
		"docker": {"COVE_TEST_DOCKER_HOST", "DOCKER_HOST"},
	} {
		t.Run(provider, func(t *testing.T) {
			engine := os.Getenv(setting[0])
			if engine == "" {
				t.Skipf("%s is not set; make test-all starts one", setting[0])
			}
			t.Setenv(setting[1], engine)
			t.Setenv("DOCKER_IMAGE", "cove-sandbox:test")
			contextsOutlive(t, program.Cove(t), provider)
		})
	}
}

func contextsOutlive(t *testing.T, executable, provider string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	end := serverOf(t, executable, home, provider)
	c := connect(t, home)
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: 512 * cove.MiB}}})
	if err != nil {
		t.Fatal(err)
	}
	coded(t, c, s.ID, cove.CodeRequest{Language: "python", Code: "x = 40\nimport os; os.mkdir('sub')"})
	if _, err := c.Contexts(s.ID).Open(t.Context(), cove.ContextSpec{Name: "mine", Language: "bash", Dir: cove.WorkspacePath + "/sub"}); err != nil {
		t.Fatal(err)
	}
	coded(t, c, s.ID, cove.CodeRequest{Context: "mine", Code: "y=here"})
	for round, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		long := cove.CodeRequest{
			Language: "python", IdempotencyKey: fmt.Sprint("long-", round), Limits: cove.Limits{Wall: 5 * time.Minute},
			Code: fmt.Sprintf(`
import sys, time
for i in range(3000):
    print("line", i)
    if i %% 100 == 0: print("err", i, file=sys.stderr)
open("running%[1]d", "w").close()
while not os.path.exists("go%[1]d"): time.sleep(0.01)
print("end")
x += 1
x`, round),
		}
		before := contextsOf(t, c, s.ID)
		gone := make(chan error, 1)
		go func() {
			_, err := c.Contexts(s.ID).Run(context.WithoutCancel(t.Context()), long)
			gone <- err
		}()
		if !eventually(30*time.Second, func() bool {
			_, err := c.Files(s.ID).Stat(t.Context(), fmt.Sprint("running", round))
			return err == nil
		}) {
			t.Fatal("the code does not begin")
		}
		end(sig)
		if err := <-gone; err == nil {
			t.Error("the caller of a server that is gone has a result")
		}

		end = serverOf(t, executable, home, provider)
		c = connect(t, home)
		if after := contextsOf(t, c, s.ID); after != strings.Replace(before, "python /workspace false", "python /workspace true", 1) {
			t.Errorf("after %v the contexts are\n%s, before they were\n%s", sig, after, before)
		}
		if err := c.Files(s.ID).Write(t.Context(), fmt.Sprint("go", round), strings.NewReader(""), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := c.Contexts(s.ID).Run(t.Context(), long)
		if err != nil {
			t.Fatalf("after %v the result is %v", sig, err)
		}
		checkLong(t, c, s.ID, r, fmt.Sprint(41+round))
		if r := coded(t, c, s.ID, cove.CodeRequest{Language: "python", Code: "x"}); r.Fresh || r.Results[0]["text/plain"] != fmt.Sprint(41+round) {
			t.Errorf("after %v: %+v", sig, r)
		}
		if r := coded(t, c, s.ID, cove.CodeRequest{Context: "mine", Code: "echo $PWD $y"}); r.Fresh || string(r.Stdout.Data) != "/workspace/sub here\n" {
			t.Errorf("after %v the shell says %q (%+v)", sig, r.Stdout.Data, r)
		}
		if again, err := c.Contexts(s.ID).Run(t.Context(), long); err != nil || again.Count != r.Count {
			t.Errorf("asked once more it is %+v, %v", again, err)
		}
	}
	if provider != "docker" { // whose copies are made of files alone, as local's are
		copiesKeep(t, c, s.ID, provider == "gvisor", "42")
	}
	if err := c.Contexts(s.ID).Close(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
	if _, err := c.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Error(err)
	}
	end(syscall.SIGTERM)
	if provider == "local" {
		nothingLeft(t, home, nil)
	}
}

// checkLong demands that all is there of what the long code writes.
func checkLong(t *testing.T, c *client.Client, id cove.ID, r *cove.CodeResult, value string) {
	t.Helper()
	var want strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&want, "line", i)
	}
	want.WriteString("end\n")
	if r.Outcome != cove.Exited || len(r.Results) != 1 || r.Results[0]["text/plain"] != value || r.Stdout.Bytes != int64(want.Len()) || r.Stderr.Lines != 30 {
		t.Fatalf("the result is %+v, with %d bytes of %d", r, r.Stdout.Bytes, want.Len())
	}
	page, err := c.Processes(id).Output(t.Context(), r.OutputID, cove.OutputRange{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	got := string(page.Data)
	for i := range 30 {
		got = strings.Replace(got, fmt.Sprintf("err %d\n", i*100), "", 1)
	}
	if got != want.String() {
		t.Errorf("%d bytes of the output are kept, of %d", len(got), want.Len())
	}
}

func coded(t *testing.T, c *client.Client, id cove.ID, req cove.CodeRequest) *cove.CodeResult {
	t.Helper()
	r, err := c.Contexts(id).Run(t.Context(), req)
	if err != nil || r.Error != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// contextsOf is the list of contexts in words.
func contextsOf(t *testing.T, c *client.Client, id cove.ID) string {
	t.Helper()
	var text strings.Builder
	for x, err := range c.Contexts(id).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, x.Name, x.Language, x.Dir, x.Busy, x.CreatedAt.UTC())
	}
	return text.String()
}

// copiesKeep looks at whether a fork and a session from a snapshot have the contexts of
// the session.
func copiesKeep(t *testing.T, c *client.Client, id cove.ID, keep bool, value string) {
	t.Helper()
	saved, err := c.Snapshots().Snapshot(t.Context(), id, cove.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := c.Snapshots().Fork(t.Context(), id, cove.ForkRequest{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Snapshot: saved.ID, Resources: cove.Resources{Memory: 512 * cove.MiB}}})
	if err != nil {
		t.Fatal(err)
	}
	for what, copied := range map[string]cove.ID{"fork": fork.ID, "session from a snapshot": made.ID} {
		r, err := c.Contexts(copied).Run(t.Context(), cove.CodeRequest{Language: "python", Code: "x"})
		if err != nil || r.Fresh == keep || keep && (len(r.Results) != 1 || r.Results[0]["text/plain"] != value) {
			t.Errorf("in a %s: %+v, %v", what, r, err)
		}
		if _, err := c.Sessions().Close(t.Context(), copied, false); err != nil {
			t.Error(err)
		}
	}
}
