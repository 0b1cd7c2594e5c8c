package engine_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

// listCounter counts the lists that are read from sandboxes, and the files in them.
type listCounter struct {
	*fake.Provider

	lists, files, open atomic.Int64
}

func (c *listCounter) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := c.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return countedSandbox{s, c}, nil
}

type countedSandbox struct {
	cove.Sandbox

	c *listCounter
}

func (s countedSandbox) Unwrap() cove.Sandbox { return s.Sandbox }

func (s countedSandbox) Files() cove.Files { return countedFiles{s.Sandbox.Files(), s.c} }

type countedFiles struct {
	cove.Files

	c *listCounter
}

func (f countedFiles) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return func(yield func(cove.FileInfo, error) bool) {
		f.c.lists.Add(1)
		f.c.open.Add(1)
		defer f.c.open.Add(-1)
		for info, err := range f.Files.List(ctx, dir, depth) {
			f.c.files.Add(1)
			if !yield(info, err) {
				return
			}
		}
	}
}

// countedList opens a session with so many files.
func countedList(t *testing.T, n int) (*listCounter, cove.Platform, cove.ID) {
	t.Helper()
	w := newWorld(t)
	c := &listCounter{}
	p := w.open(func(cfg *engine.Config) {
		c.Provider = w.provider
		cfg.Providers = []cove.Provider{c}
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	for i := range n {
		if err := p.Files(s.ID).Write(t.Context(), fmt.Sprintf("dir/f%05d", i), strings.NewReader(""), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return c, p, s.ID
}

// turn reads a page.
func turn(t *testing.T, f cove.Files, skip, limit int) (names []string, more bool) {
	t.Helper()
	page, more, err := cove.ListPage(t.Context(), f, "dir", 1, skip, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range page {
		names = append(names, strings.TrimPrefix(info.Path, cove.WorkspacePath+"/dir/"))
	}
	return names, more
}

// TestPagesReadEachFileOnce: a list that is read page by page makes the sandbox list it once,
// however many pages it has; also with another one in between.
func TestPagesReadEachFileOnce(t *testing.T) {
	const files, size = 1000, 30
	c, p, id := countedList(t, files)
	f := p.Files(id)
	var names, others []string
	for more := true; more; {
		var page []string
		page, more = turn(t, f, len(names), size)
		names = append(names, page...)
		if page, _ = turn(t, f, len(others), 7); len(page) > 0 {
			others = append(others, page...)
		}
	}
	if len(names) != files || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != files || !slices.Equal(others, names[:len(others)]) {
		t.Errorf("%d files, and %d by smaller pages", len(names), len(others))
	}
	if lists, read := c.lists.Load(), c.files.Load(); lists != 2 || read > files+int64(len(others))+1 {
		t.Errorf("the sandbox made %d lists and told of %d files", lists, read)
	}
	// A place that no list waits at is found all the same.
	if page, more := turn(t, f, 990, 5); !more || !slices.Equal(page, names[990:995]) {
		t.Errorf("got %v", page)
	}
	if page, more := turn(t, f, 995, 5); more || !slices.Equal(page, names[995:]) {
		t.Errorf("got %v", page)
	}
	if page, more := turn(t, f, 2*files, 5); more || len(page) > 0 {
		t.Errorf("beyond the end is %v", page)
	}
}

// TestListsThatWaitAreBounded: a session has few lists that wait for their next page, none
// for long, and none once its sandbox is gone.
func TestListsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, id := countedList(t, 20)
		f := p.Files(id)
		for i := range 15 {
			turn(t, f, i, 3)
		}
		if n := c.open.Load(); n < 1 || n > 4 {
			t.Errorf("%d lists wait", n)
		}
		if s, err := p.Sessions().Get(t.Context(), id); err != nil || s.Busy {
			t.Errorf("a session whose lists wait is busy: %+v, %v", s, err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if n := c.open.Load(); n != 0 {
			t.Errorf("%d lists wait after a minute", n)
		}
		turn(t, f, 0, 3)
		if _, err := p.Sessions().Close(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
		if n := c.open.Load(); n != 0 {
			t.Errorf("%d lists wait in a session that was closed", n)
		}
	})
}
