package pyrun_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// ask runs code over files, each a table, and returns what came of it.
func ask(t *testing.T, code string, files map[string]string, change ...func(*pyrun.Question)) *pyrun.Result {
	t.Helper()
	h := newHost(t)
	q := pyrun.Question{Code: code, Timeout: time.Minute, MaxRows: 5, MaxOutput: 4 << 10}
	for name, text := range files {
		path := filepath.Join(h.Dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ext := filepath.Ext(name)
		q.Tables = append(q.Tables, pyrun.Table{Name: name[:len(name)-len(ext)], Path: path, Format: pyrun.Format(ext[1:])})
	}
	for _, c := range change {
		c(&q)
	}
	r, err := pyrun.Run(t.Context(), kernelsIn(h), h, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kernelsIn starts interpreters whose workspace is the host's directory.
func kernelsIn(h *host) cove.Kernels { return inside{kernel.New(), h.Dir} }

type inside struct {
	cove.Kernels
	dir string
}

func (i inside) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	k, err := i.Kernels.Open(ctx, in, spec)
	return moved{k, i.dir}, err
}

type moved struct {
	cove.Kernel
	dir string
}

func (m moved) Adopt(ctx context.Context, _ string, env map[string]string) error {
	return m.Kernel.Adopt(ctx, m.dir, env)
}

// orders is a table.
const orders = "id,status,amount\n1,open,2.5\n2,paid,\n3,paid,4\n"
