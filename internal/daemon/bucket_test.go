package daemon_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestArchivesOfOthers starts servers on archives that are not theirs: a second one that
// is alone, and a node that lost its REDIS_URL. None starts, and nothing is removed.
func TestArchivesOfOthers(t *testing.T) {
	s3, shared := s3test.Start(t, os.Getenv("COVE_TEST_S3")), settled(t, "a")
	node := []string{"REDIS_URL", shared.URL(), "COVE_CLUSTER_SECRET", strings.Repeat("s", 32), "COVE_NODE_ID", "a"}
	for name, before := range map[string][]string{"alone": nil, "cluster": node} {
		t.Run(name, func(t *testing.T) {
			pairs := []string{
				"COVE_ARCHIVE_URL", s3.URL(s3.Address, name), "COVE_ARCHIVE_ACCESS_KEY", s3test.AccessKey, "COVE_ARCHIVE_SECRET_KEY", s3test.SecretKey,
			}
			cfg := settings(t, append(pairs, before...)...)
			r, end := serve(t, cfg, daemon.Options{})
			c := dial(t, "unix://"+r.Socket, "")
			s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Workspace: cove.Workspace{Moves: before != nil}}})
			if err == nil {
				_, err = c.Sessions().Stop(t.Context(), s.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			end()

			if before != nil {
				pairs = append(pairs, "COVE_HOME", cfg.Home)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err = daemon.Serve(ctx, settings(t, pairs...), daemon.Options{Logger: slog.New(slog.DiscardHandler)})
			if cove.CodeOf(err) != cove.Conflict || !strings.Contains(cove.MessageOf(err), "COVE_ARCHIVE_URL: the archives at") || cove.RemedyOf(err) == "" {
				t.Errorf("the next one: %v", err)
			}
			if names := entries(t, filepath.Join(s3.Dir, name, "sessions")); !slices.Equal(names, []string{string(s.ID)}) {
				t.Errorf("the bucket holds %q", names)
			}
		})
	}
}
