package duckdb_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// script makes an executable of ours that is small.
func script(t *testing.T) (cove.Tool, []byte) {
	t.Helper()
	image := []byte("#!/bin/sh\nexec cat\n# ")
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		image = append(image, 'a'+byte(r.IntN(26)))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cove-duckdb"), image, 0o700); err != nil {
		t.Fatal(err)
	}
	return cove.Tool{Name: "cove-duckdb", Dir: dir}, image
}

func TestPut(t *testing.T) {
	tool, image := script(t)
	d, in := duckdb.New(tool, duckdb.Limits{}), newHost(t)
	path, err := d.Put(t.Context(), in)
	if err != nil || !strings.HasPrefix(path, duckdb.PutPath+"/cove-duckdb-") {
		t.Fatalf("got %q, %v", path, err)
	}
	inside := func() string {
		t.Helper()
		info, err := os.Stat(in.to + path)
		if err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("it is %v, %v", info, err)
		}
		text, _ := os.ReadFile(in.to + path)
		return string(text)
	}
	if inside() != string(image) {
		t.Error("it did not arrive as it was sent")
	}
	before := in.Started()
	if again, err := d.Put(t.Context(), in); err != nil || again != path || in.Started() != before+1 {
		t.Errorf("the second time: %q, %v, %d programs", again, err, in.Started()-before)
	}
	for name, lie := range map[string]string{"a short one": string(image[:1000]), "another one": "#!" + strings.Repeat("x", len(image)-2)} {
		_ = os.Remove(in.to + path)
		if err := os.WriteFile(in.to+path, []byte(lie), 0o755); err != nil {
			t.Fatal(err)
		}
		if again, err := d.Put(t.Context(), in); err != nil || again != path || inside() != string(image) {
			t.Errorf("%s in its place: %q, %v", name, again, err)
		}
	}
	if left, _ := filepath.Glob(in.to + duckdb.PutPath + "/.new*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.MkdirAll(in.to+cove.ToolPath, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in.to+"/opt/cove/cove-duckdb", image, 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := d.Put(t.Context(), in); err != nil || path != "/opt/cove/cove-duckdb" {
		t.Errorf("what the image has: %q, %v", path, err)
	}
}

func TestSend(t *testing.T) {
	in := newHost(t)
	const name = duckdb.PutPath + "/data/my shop/it's $(big).csv"
	text := strings.Repeat("id,amount\n", 100_000)
	for range 2 { // the second takes the place of the first
		if err := duckdb.Send(t.Context(), in, strings.NewReader(text), name); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(in.to + name)
	if info, _ := os.Stat(in.to + name); err != nil || string(got) != text || info.Mode().Perm() != 0o444 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	broken := errors.New("the disk is gone")
	err = duckdb.Send(t.Context(), in, io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), duckdb.PutPath+"/x.csv")
	if wantType(t, err, cove.RunInvalidInput); !errors.Is(err, broken) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	if _, err := os.Stat(in.to + duckdb.PutPath + "/x.csv"); err == nil {
		t.Error("half a file is there")
	}
	err = duckdb.Send(t.Context(), in, strings.NewReader(text), "/proc/x/y.csv")
	wantType(t, err, cove.RunUnavailable, "cannot be written in the sandbox")
}

// TestPutPacked: a copy that is compressed already arrives as the executable, and one of
// something else does not.
func TestPutPacked(t *testing.T) {
	tool, image := script(t)
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"itself":         {image, ""},
		"something else": {image[1:], "did not arrive as it was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write(c.text); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			in := newHost(t)
			d := duckdb.New(tool, duckdb.Limits{}).Packed(func() (io.ReadCloser, error) { return io.NopCloser(&b), nil })
			path, err := d.Put(t.Context(), in)
			if c.says != "" {
				wantType(t, err, cove.RunUnavailable, c.says)
				return
			}
			if text, _ := os.ReadFile(in.to + path); err != nil || !bytes.Equal(text, image) {
				t.Errorf("got %q with %d bytes, %v", path, len(text), err)
			}
		})
	}
	_, err := duckdb.New(tool, duckdb.Limits{}).Packed(func() (io.ReadCloser, error) { return nil, errGone }).Put(t.Context(), newHost(t))
	wantType(t, err, cove.RunUnavailable, "cannot be read from")
}

// TestPutFails where a sandbox cannot take it, and says why.
func TestPutFails(t *testing.T) {
	tool, _ := script(t)
	d := duckdb.New(tool, duckdb.Limits{})
	for name, c := range map[string]struct {
		play func(*part)
		code cove.Code
		says string
	}{
		"no shell":        {func(q *part) { q.result.ExitCode = 127 }, cove.Unavailable, "exit code 127"},
		"no room":         {func(q *part) { _, _ = io.Copy(io.Discard, q.in); q.raw("gzip: No space left on device\x1b") }, cove.Unavailable, "No space left on device"},
		"says too much":   {func(q *part) { q.raw(strings.Repeat("x", 1<<20)) }, cove.Unavailable, "xxx"},
		"names its own":   {func(q *part) { q.raw("/workspace/evil") }, cove.Unavailable, "/workspace/evil"},
		"takes nothing":   {func(q *part) { q.result = cove.Result{Outcome: cove.OutOfMemory, ExitCode: 137} }, cove.Unavailable, "out_of_memory"},
		"lost on the way": {func(q *part) { q.failed = errGone }, cove.Internal, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := d.Put(t.Context(), &puppet{play: c.play})
			if wantType(t, err, cove.RunUnavailable, c.says); cove.CodeOf(err) != c.code || path != "" || len(err.Error()) > 3000 {
				t.Errorf("got %q, %v", path, err)
			}
		})
	}
	if _, err := d.Put(t.Context(), &puppet{refuse: errGone}); !errors.Is(err, errGone) {
		t.Errorf("a place that starts nothing: %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	if _, err := d.Put(ctx, &puppet{play: func(q *part) { leave(); <-q.killed }}); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left: %v", err)
	}
	for _, tool := range []cove.Tool{{Name: "cove-duckdb", Dir: t.TempDir()}, {Name: "../passwd", Dir: t.TempDir()}, {Name: "x", Dir: "/nowhere"}} {
		_, err := duckdb.New(tool, duckdb.Limits{}).Put(t.Context(), newHost(t))
		wantType(t, err, cove.RunUnavailable, "cannot be read from")
	}
}

// TestAtPuts: a place where nothing is mounted gets the executable, once.
func TestAtPuts(t *testing.T) {
	tier.Full(t, "TestPut and TestPutPacked put small executables; this one takes DuckDB")
	d, in := duckdb.New(realTool(t), duckdb.Limits{}), newHost(t)
	place := cove.RunSandbox{Sandbox: hostSandbox{in, puppetSandbox{}}, Keep: &sync.Map{}}
	for range 2 {
		h, err := d.At(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		if tree, err := h.Parse(t.Context(), "SELECT 1"); err != nil || len(tree.Statements) != 1 {
			t.Errorf("got %+v, %v", tree, err)
		}
	}
	if in.Started() != 3 { // one looks, one writes, one is DuckDB
		t.Errorf("%d programs were started", in.Started())
	}
}

// hostSandbox is a sandbox that is the host.
type hostSandbox struct {
	*host
	puppetSandbox
}

func (h hostSandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	return h.host.Start(ctx, cmd)
}
