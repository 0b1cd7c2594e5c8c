package duckdb_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/talk/talktest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// host is a place without a sandbox around it.
type host struct {
	*talktest.Host

	to string // where PutPath and ToolPath are
}

func newHost(t *testing.T) *host {
	t.Helper()
	return &host{talktest.New(t), t.TempDir()}
}

// inside is a path as the host has it.
func (h *host) inside(path string) string {
	for _, dir := range []string{duckdb.PutPath, cove.ToolPath} {
		if strings.HasPrefix(path, dir) {
			return h.to + path
		}
	}
	return path
}

// Start implements [cove.Starter].
func (h *host) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	cmd.Argv = slices.Clone(cmd.Argv)
	for i, a := range cmd.Argv {
		cmd.Argv[i] = h.inside(a)
	}
	cmd.Stdout = outside{h.to, cmd.Stdout}
	return h.Host.Start(ctx, cmd)
}

// outside takes the host's own directory out of what a program says.
type outside struct {
	dir string
	to  io.Writer
}

func (o outside) Write(p []byte) (int, error) {
	if _, err := io.WriteString(o.to, strings.ReplaceAll(string(p), o.dir, "")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// realTool is DuckDB's executable, in a directory that holds nothing else.
func realTool(t *testing.T) cove.Tool {
	t.Helper()
	path := providertest.Needs(t, "duckdb", "COVE_TEST_DUCKDB")
	dir := t.TempDir()
	if err := os.Link(path, filepath.Join(dir, "cove-duckdb")); err != nil { // another file system
		image, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cove-duckdb"), image, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return cove.Tool{Name: "cove-duckdb", ID: "test", Dir: dir}
}
