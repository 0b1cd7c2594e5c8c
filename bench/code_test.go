package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

// codeOn is how code is measured where everything only pretends.
func codeOn(t *testing.T) codeOptions {
	t.Helper()
	return codeOptions{
		python: script(t, "python3", `test "$1" = -c`), node: script(t, "node", `test "$1" = -e`), rounds: 4, sessions: 2,
		frame: "x = 1\nx + 1", patience: 10 * time.Second, kernels: fake.Kernels{Names: []string{"python", "node"}},
	}
}

func openTemplates(dir string) (cove.Provider, error) {
	return fake.New(fake.Config{Dir: dir, Templates: []string{"base", dataTemplate}})
}

// TestMeasureCode proves that everything is measured; the numbers are not looked
// at.
func TestMeasureCode(t *testing.T) {
	rows, kept, err := codeRows(t.Context(), codeOn(t), openTemplates)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 || len(kept) != 3 {
		t.Fatalf("%d rows, %d kinds of sessions", len(rows), len(kept))
	}
	want := [][2]float64{{0.1, 0.02}, {0.5, 0.1}, {0.05, 0.01}, {0.3, 0.05}}
	for i, r := range rows {
		if r.name == "" || r.measured == "" || r.baseline == "" || r.value <= 0 || [2]float64{r.must, r.aim} != want[i] {
			t.Errorf("%+v", r)
		}
	}
	text := renderKept(kept)
	for _, want := range []string{"| an idle Python session, after `1+1` | 0.00 MB |", "| an idle `data` session, after its first frame | ", " | 2 |\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestCodeThatCannotBeMeasured: what goes wrong is said, and nothing is left.
func TestCodeThatCannotBeMeasured(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*codeOptions)
		open   func(string) (cove.Provider, error)
		want   string
	}{
		"no provider": {open: func(string) (cove.Provider, error) { return nil, errors.New("none here") }, want: "none here"},
		"no template": {open: openFake, change: func(o *codeOptions) { o.frame = "1" }, want: "data"},
		"no node":     {change: func(o *codeOptions) { o.kernels = fake.Kernels{Names: []string{"python"}} }, want: "node"},
		"no frame":    {change: func(o *codeOptions) { o.frame = "x = 1" }, want: "has 0 values"},
		"an error":    {change: func(o *codeOptions) { o.frame = "raise Oops no" }, want: "Oops"},
		"never warm": {change: func(o *codeOptions) {
			o.patience, o.kernels = 10*time.Millisecond, coldKernels{o.kernels}
		}, want: "became warm"},
	} {
		t.Run(name, func(t *testing.T) {
			o := codeOn(t)
			if tc.change != nil {
				tc.change(&o)
			}
			if tc.open == nil {
				tc.open = openTemplates
			}
			_, _, err := codeRows(t.Context(), o, tc.open)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// coldKernels are interpreters of which none gets warm.
type coldKernels struct{ cove.Kernels }

func (k coldKernels) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	if spec.Warm {
		return nil, errors.New("too cold")
	}
	return k.Kernels.Open(ctx, in, spec)
}
