package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// stream makes events: "action test output" by line, in one package.
func stream(dir string, lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		action, rest, _ := strings.Cut(l, " ")
		test, output, _ := strings.Cut(rest, " ")
		b.WriteString(`{"Action":"` + action + `","Package":"` + module + dir + `","Test":"` + test + `","Output":"` + output + `\n"}` + "\n")
	}
	return b.String()
}

func tableOf(t *testing.T, in string) *table {
	t.Helper()
	cols := []column{
		{name: "one", dir: "provider/one", test: "TestConformance", against: "itself"},
		{name: "two", dir: "provider/two", test: "TestConformance", against: "an engine"},
		{name: "also", dir: "provider/two", test: "TestConformanceAlso", against: "another"},
	}
	table := newTable(cols, []string{"exec/runs", "exec/ends", "pause/stops"})
	if err := table.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTable(t *testing.T) {
	table := tableOf(t, stream("provider/one",
		"run TestConformance", "run TestConformance/exec", "run TestConformance/exec/runs",
		"pass TestConformance/exec/runs", "run TestConformance/exec/ends", "pass TestConformance/exec/ends",
		"run TestConformance/exec/ends/by_attack", "skip TestConformance/exec/ends/by_attack",
		"pass TestConformance/exec", "run TestConformance/pause/stops",
		"output TestConformance/pause/stops     env.go:49: provider one lacks what this case is about: the power pause",
		"output TestConformance/pause/stops --- SKIP: TestConformance/pause/stops (0.00s)",
		"skip TestConformance/pause/stops", "pass TestConformance", "pass ",
	)+stream("provider/two",
		"run TestConformance", "output TestConformance     require.go:26: provider two is not ready: no engine answers", "skip TestConformance",
		"run TestConformanceAlso", "run TestConformanceAlso/exec/runs", "pass TestConformanceAlso/exec/runs", "pass TestConformanceAlso", "pass ",
	))
	want := `             one   two   also
exec/runs    pass  – 1   pass
exec/ends    pass  – 1   – 2
pause/stops  – 3   – 1   – 2

  1  not run: provider two is not ready: no engine answers
  2  not run: not a part of this run
  3  unsupported: the power pause

one, against itself: 2 passed, 1 unsupported, 0 not run
two, against an engine: 0 passed, 0 unsupported, 3 not run
also, against another: 1 passed, 0 unsupported, 2 not run
`
	if diff := cmp.Diff(want, table.text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if wrong := table.failed(); len(wrong) > 0 {
		t.Errorf("failed: %q", wrong)
	}
	want = `|  | run against | passed | unsupported | not run |
|---|---|---|---|---|
| one | itself | 2 | 1 | 0 |
| two | an engine | 0 | 0 | 3 |
| also | another | 1 | 0 | 2 |

| case | one | two | also |
|---|---|---|---|
| ` + "`exec/runs`" + ` | pass | – 1 | pass |
| ` + "`exec/ends`" + ` | pass | – 1 | – 2 |
| ` + "`pause/stops`" + ` | – 3 | – 1 | – 2 |

1. not run: provider two is not ready: no engine answers
2. not run: not a part of this run
3. unsupported: the power pause
`
	if diff := cmp.Diff(want, table.markdown()); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}

func TestWhatFailsIsSaid(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string
	}{
		"a case": {
			in: stream("provider/one", "run TestConformance", "run TestConformance/exec/runs",
				"output TestConformance/exec/runs     exec.go:7: the exit code is 1", "fail TestConformance/exec/runs", "fail TestConformance", "fail "),
			want: []string{"one: the run of provider/one failed", "one exec/runs: the exit code is 1"},
		},
		"a case that did not finish": {
			in:   stream("provider/one", "run TestConformance", "run TestConformance/exec/runs", "fail "),
			want: []string{"one: the run of provider/one failed", "one exec/runs: did not finish"},
		},
		"a stream that was cut off": {
			in:   stream("provider/one", "run TestConformance"),
			want: []string{"one: did not finish"},
		},
		"a package that cannot be built": {
			in:   stream("provider/two", "fail "),
			want: []string{"two: the run of provider/two failed", "also: the run of provider/two failed"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tableOf(t, tt.in).failed()); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	if err := newTable(nil, nil).read(strings.NewReader("no event\n")); err == nil {
		t.Error("a line that is no event is read")
	}
	broke := errors.New("the pipe broke")
	if err := newTable(nil, nil).read(iotest.ErrReader(broke)); !errors.Is(err, broke) {
		t.Errorf("the error is %v; want %v", err, broke)
	}
}

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for _, text := range []string{"first\n", "second\n"} {
		if _, err := os.Stat(file); err != nil {
			if err := os.WriteFile(file, []byte("above\n"+begin+"\n"+end+"\nbelow\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := replace(file, text); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("above\n"+begin+"\n\n"+text+"\n"+end+"\nbelow\n", string(got)); diff != "" {
			t.Errorf("the page (-want +got):\n%s", diff)
		}
	}
	if err := os.WriteFile(file, []byte("no marks\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(file, "text"); err == nil {
		t.Error("a page without marks is written")
	}
	if err := replace(filepath.Join(t.TempDir(), "none"), "text"); err == nil {
		t.Error("a page that is not there is written")
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"-nosuch"}, {"-version", "fake"}, {"-only", "nobody"}, {"-write", "-only", "fake"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// What make test leaves is enough.
func TestFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.json")
	events := stream("provider/fake", "run TestConformance", "run TestConformance/exec/true", "pass TestConformance/exec/true", "pass TestConformance", "run TestOther", "fail TestOther", "fail ")
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-only", "fake", "-from", file}, &out, t.Output()); err != nil || !strings.Contains(out.String(), "not a part of this run") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := run(t.Context(), []string{"-from", file + ".none"}, io.Discard, io.Discard); err == nil {
		t.Error("a file that is not there is read")
	}
}

// The fake is quick enough to be run for good.
func TestFake(t *testing.T) {
	t.Chdir("../..")
	var out strings.Builder
	if err := run(t.Context(), []string{"-only", "fake", "-version", "fake=1.2"}, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nexec/", "  pass\n", "unsupported: the power solo\n", "memory (1.2): ", " 0 not run\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
