package image_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs/image"
)

// pretendDocker puts a docker first in the PATH that does what a script says.
func pretendDocker(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestBuildFile(t *testing.T) {
	archive := writeFile(t, tarOf(t, saved(t, twoLayers)...))
	calls := filepath.Join(t.TempDir(), "calls")
	pretendDocker(t, `echo "$@" >>`+calls+`
case $1 in
build) echo "Step 1/2"; grep -q FROM "$3" ;;
save) cp `+archive+` "$3" ;;
esac`)
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out.tar")
	must(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\n"), 0o600))
	var log bytes.Buffer
	must(t, image.Docker{Log: &log}.BuildFile(t.Context(), filepath.Join(dir, "Dockerfile"), dir, out))
	if tree, _, err := unpack(t, out, image.Options{}); err != nil || !strings.Contains(log.String(), "Step 1/2") {
		t.Errorf("%s: %v; the log is %q", tree, err, log.String())
	}
	said, err := os.ReadFile(calls)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[3], "rmi cove-build:") {
		t.Errorf("docker was asked %q", lines)
	}
}

func TestBuildFileRefused(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   cove.Code
		words  string
	}{
		"no daemon":    {"echo cannot connect >&2; exit 1", cove.Unsupported, "--image"},
		"bad file":     {`case $1 in build) echo "line 3: what?" >&2; exit 1;; esac`, cove.Invalid, "line 3: what?"},
		"cannot save":  {`case $1 in save) exit 3;; esac`, cove.Unavailable, "save"},
		"cannot clean": {`case $1 in rmi) echo in use >&2; exit 1;; esac`, cove.Unavailable, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			pretendDocker(t, c.script)
			err := image.Docker{Log: &bytes.Buffer{}}.BuildFile(t.Context(), "Dockerfile", ".", filepath.Join(t.TempDir(), "x"))
			if !errors.Is(err, c.code) || !strings.Contains(err.Error()+cove.RemedyOf(err), c.words) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("no docker", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if err := (image.Docker{Log: &bytes.Buffer{}}).BuildFile(t.Context(), "Dockerfile", ".", "x"); !errors.Is(err, cove.Unsupported) {
			t.Error(err)
		}
	})
}
