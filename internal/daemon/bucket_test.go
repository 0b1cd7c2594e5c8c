package daemon_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/bucket/s3test"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// TestArchivesInABucket stops a session at one server and starts it at the next.
func TestArchivesInABucket(t *testing.T) {
	s3 := s3test.Start(t, os.Getenv("COVE_TEST_S3"))
	pairs := []string{
		"COVE_ARCHIVE_URL", s3.URL(s3.Address, "cove"), "COVE_ARCHIVE_ACCESS_KEY", s3test.AccessKey, "COVE_ARCHIVE_SECRET_KEY", s3test.SecretKey,
		"MSB_ORPHAN_CLEANUP_INTERVAL", "0.05",
	}
	cfg := settings(t, pairs...)
	r, end := serve(t, cfg, daemon.Options{})
	c := dial(t, "unix://"+r.Socket, "")
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	const file = cove.WorkspacePath + "/f"
	if err := c.Files(s.ID).Write(t.Context(), file, strings.NewReader("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, filepath.Join(s3.Dir, "cove", "sessions")); !slices.Equal(names, []string{string(s.ID)}) {
		t.Errorf("the bucket holds %q", names)
	}
	if _, err := os.Stat(filepath.Join(cfg.Home, "archives")); err == nil {
		t.Error("there are archives in COVE_HOME, too")
	}
	end()

	r, end = serve(t, settings(t, append(pairs, "COVE_HOME", cfg.Home)...), daemon.Options{})
	c = dial(t, "unix://"+r.Socket, "")
	if _, err := c.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	f, err := c.Files(s.ID).Read(t.Context(), file, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil || string(text) != "kept" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if names := entries(t, filepath.Join(s3.Dir, "cove")); slices.Contains(names, "sessions") {
		t.Errorf("the session is in use, and the bucket holds %q", names)
	}
	end()
}
