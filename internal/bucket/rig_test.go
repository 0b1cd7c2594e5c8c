package bucket_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive/archivetest"
	"github.com/cove-sandbox/cove/internal/bucket"
	"github.com/cove-sandbox/cove/internal/bucket/s3test"
)

// rig is a store whose files the test can reach behind the back of all.
type rig struct {
	url    string
	dir    string         // with blobs and sessions
	server *s3test.Server // nil for a folder
}

// onEach runs a test with a shared folder and with a bucket.
func onEach(t *testing.T, test func(t *testing.T, r rig)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) { test(t, newFolder(t)) })
	t.Run("s3", func(t *testing.T) { test(t, newBucket(t)) })
}

func newFolder(t *testing.T) rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	return rig{url: "file://" + dir, dir: dir}
}

func newBucket(t *testing.T) rig {
	t.Helper()
	s := s3test.Start(t, os.Getenv("COVE_TEST_S3"))
	return rig{url: s.URL(s.Address, "some/prefix"), dir: filepath.Join(s.Dir, "some", "prefix"), server: s}
}

func config(t *testing.T) bucket.Config {
	t.Helper()
	return bucket.Config{AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, Owner: "tests", Scratch: t.TempDir()}
}

// open is one node.
func open(t *testing.T, url string) *bucket.Archives {
	t.Helper()
	cfg := config(t)
	a, err := bucket.Open(t.Context(), url, cfg)
	check(t, err)
	t.Cleanup(func() {
		check(t, a.Close())
		if left := entries(t, cfg.Scratch); len(left) > 0 {
			t.Errorf("left in the scratch folder: %q", left)
		}
	})
	return a
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, a *bucket.Archives, id cove.ID, text string) {
	t.Helper()
	n, err := a.Put(t.Context(), id, strings.NewReader(text))
	check(t, err)
	if int(n) != len(text) {
		t.Fatalf("wrote %d bytes of %d", n, len(text))
	}
}

func sweep(t *testing.T, a *bucket.Archives, want int64) {
	t.Helper()
	n, err := a.Sweep(t.Context())
	check(t, err)
	if n != want {
		t.Errorf("%d were swept, want %d", n, want)
	}
}

// entries lists a folder, which may be missing.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// files are the blobs and references that are there.
func (r rig) files(t *testing.T, folder string, want int) []string {
	t.Helper()
	var paths []string
	for _, name := range entries(t, filepath.Join(r.dir, folder)) {
		paths = append(paths, filepath.Join(r.dir, folder, name))
	}
	if len(paths) != want {
		t.Fatalf("%s holds %q, want %d", folder, paths, want)
	}
	return paths
}

func TestSuite(t *testing.T) {
	onEach(t, func(t *testing.T, _ rig) {
		archivetest.Run(t, func(t *testing.T) cove.Archives {
			t.Helper()
			if strings.Contains(t.Name(), "/s3/") {
				return open(t, newBucket(t).url)
			}
			return open(t, newFolder(t).url)
		})
	})
}
