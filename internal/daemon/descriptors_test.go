//go:build linux

package daemon_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// limitDescriptors leaves so many file descriptors to this process until the test ends.
func limitDescriptors(t *testing.T, more uint64) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	now := syscall.Rlimit{Cur: uint64(len(open)) + more, Max: was.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	})
}

// TestDescriptors: sessions leave file descriptors for the server. Where they are too few
// for one more session it is refused and the others go on; where the reserve is in use,
// the server says that it is not ready, until it is not.
func TestDescriptors(t *testing.T) {
	for _, provider := range []string{"fake", "local"} {
		t.Run(provider, func(t *testing.T) {
			cfg := settings(t, "SANDBOX_PROVIDER", provider, "MSB_MAX_SESSIONS", "200")
			needProvider(t, cfg, provider)
			r, _ := serve(t, cfg, daemon.Options{})
			c := dial(t, r.URL, tenantKey(t, r, "one"))
			limitDescriptors(t, 160)
			var err error
			var ids []cove.ID
			var files []*os.File
			for len(ids) < 100 {
				var s *cove.Session
				if s, err = c.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Resources: cove.Resources{Memory: 64 * cove.MiB}, Workspace: cove.Workspace{Size: cove.MiB}}}); err != nil {
					break
				}
				ids = append(ids, s.ID)
				if provider == "fake" { // it takes none
					for range 5 {
						f, ferr := os.Open(os.DevNull)
						if ferr != nil {
							t.Fatal(ferr)
						}
						files = append(files, f)
					}
				}
			}
			if len(ids) == 0 || cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonCapacity || !strings.Contains(cove.RemedyOf(err), "ulimit -n") {
				t.Fatalf("after %d sessions: %v", len(ids), err)
			}
			for _, id := range ids {
				if x, err := c.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "echo here"}); err != nil || string(x.Stdout.Data) != "here\n" {
					t.Fatalf("%+v, %v", x, err)
				}
			}
			if code, body := ask(t, r.URL+"/ready"); code != http.StatusOK {
				t.Errorf("/ready: %d %s", code, body)
			}
			var code int
			var body string
			for range 60 {
				f, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, f)
				if code, body = ask(t, r.URL+"/ready"); code != http.StatusOK {
					break
				}
			}
			if code != http.StatusServiceUnavailable || !strings.Contains(body, "file descriptors") {
				t.Errorf("/ready with less than the reserve: %d %s", code, body)
			}
			for _, f := range files {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			for _, id := range ids {
				if _, err := c.Sessions().Close(t.Context(), id, false); err != nil {
					t.Error(err)
				}
			}
			if code, body := ask(t, r.URL+"/ready"); code != http.StatusOK {
				t.Errorf("/ready after all were closed: %d %s", code, body)
			}
			if err := workOnce(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}
