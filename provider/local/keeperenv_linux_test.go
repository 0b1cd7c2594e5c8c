package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestKeeperEnvironment is about what a keeper gets to know of the environment of
// who starts it: whom to trust, and nothing else.
func TestKeeperEnvironment(t *testing.T) {
	work, err := os.Getwd()
	must(t, err)
	t.Setenv("SSL_CERT_FILE", "roots.pem")
	t.Setenv("SSL_CERT_DIR", "/etc/roots:more")
	t.Setenv("COVE_API_KEY", "hunter2")
	dir := t.TempDir()
	s := create(t, provider(t, keeping(dir)))
	text, err := os.ReadFile("/proc/" + strconv.Itoa(keeperPID(dir)) + "/environ")
	must(t, err)
	env := strings.Split(string(text), "\x00")
	for _, want := range []string{"SSL_CERT_FILE=" + filepath.Join(work, "roots.pem"), "SSL_CERT_DIR=/etc/roots:" + filepath.Join(work, "more")} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
	for _, name := range []string{"COVE_API_KEY", "PATH", "HOME"} {
		if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			t.Errorf("%s is in %q", name, env)
		}
	}
	must(t, s.Destroy(t.Context()))
}
