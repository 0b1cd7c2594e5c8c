package clustertest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cove-sandbox/cove/internal/clustertest"
)

// listed is a cluster that has sessions of which nobody was told, and ends each of them
// when it is asked for the second time.
type listed struct {
	asked map[string]int
	stays bool
}

func (l listed) RoundTrip(r *http.Request) (*http.Response, error) {
	id := strings.TrimPrefix(r.URL.Path, "/api/sandboxes/")
	if r.Method == http.MethodDelete {
		l.asked[id]++
	}
	var items []string
	for _, id := range []string{"a", "b"} {
		if l.stays || l.asked[id] < 2 {
			items = append(items, fmt.Sprintf(`{"session_id":%q}`, id))
		}
	}
	body := `{"items":[` + strings.Join(items, ",") + `]}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestCloseAll(t *testing.T) {
	for _, stays := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := listed{asked: map[string]int{}, stays: stays}
			if err := clustertest.CloseAll(t, l); (err != nil) != stays {
				t.Errorf("they stay: %t; %v", stays, err)
			}
			if l.asked["a"] < 2 || l.asked["b"] < 2 {
				t.Errorf("asked to end %v", l.asked)
			}
		})
	}
}

func TestRemains(t *testing.T) {
	home := t.TempDir()
	sum := sha256.Sum256([]byte(filepath.Join(home, "providers", "local")))
	top := "/sys/fs/cgroup"
	if _, err := os.Stat(top + "/cgroup.controllers"); errors.Is(err, fs.ErrNotExist) {
		top += "/pids"
	}
	top = filepath.Join(top, "cove-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(filepath.Join(top, "sandbox", "inner"), 0o700); err != nil {
		clustertest.Lacks(t, "no control group can be made: %v", err)
	}
	t.Cleanup(func() { // it is gone, unless the test failed
		for _, dir := range []string{filepath.Join(top, "sandbox", "inner"), filepath.Join(top, "sandbox"), top} {
			_ = syscall.Rmdir(dir)
		}
	})
	left, removed := clustertest.Clean(t, home)
	if !slices.Equal(left, []string{"sandbox"}) || removed != nil {
		t.Errorf("found %q, removed: %v", left, removed)
	}
	if _, err := os.Stat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stays: %v", err)
	}
	if left, removed = clustertest.Clean(t, home); len(left) > 0 || removed != nil {
		t.Errorf("found %q where there is nothing: %v", left, removed)
	}
}
