package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func reportOf(t *testing.T, in string) (out string, code int) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(files{}, strings.NewReader(in), &stdout, &stderr)
	if stderr.String() != "" {
		t.Errorf("stderr: %s", stderr.String())
	}
	return stdout.String(), code
}

func TestReport(t *testing.T) {
	const p = `"Package":"github.com/cove-sandbox/cove/engine"`
	pass := `{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"output",` + p + `,"Test":"TestA","Output":"noise\n"}
{"Action":"pass",` + p + `,"Test":"TestA"}
`
	end := `{"Action":"pass",` + p + `,"Elapsed":1.25}
`
	tests := map[string]struct {
		in   string
		want string
		code int
	}{
		"passes": {
			in: `{"Action":"start",` + p + "}\n" + pass + end,
			want: `ok    engine                          1.2s  1 tests
1 passed, 0 failed, 0 skipped
`,
		},
		"cached": {
			in: pass + `{"Action":"output",` + p + `,"Output":"ok  \tengine\t(cached)\n"}` + "\n" + end,
			want: `ok    engine                          1.2s  1 tests, cached
1 passed, 0 failed, 0 skipped
`,
		},
		"nothing": {
			in: "",
			want: `
Not to be trusted:
  no test ran
0 passed, 0 failed, 0 skipped
`,
			code: 1,
		},
		"package without tests": {
			in: `{"Action":"start",` + p + "}\n" + `{"Action":"skip",` + p + "}\n",
			want: `
Not to be trusted:
  no test ran
0 passed, 0 failed, 0 skipped
`,
			code: 1,
		},
		"cut between events": {
			in: pass,
			want: `FAIL  engine                          0.0s

Failed:
  engine (outside of a test)

Not to be trusted:
  the stream ends in the middle of engine
1 passed, 1 failed, 0 skipped
`,
			code: 1,
		},
		"cut within an event": {
			in: pass + end + `{"Action":"pa`,
			want: `ok    engine                          1.2s  1 tests
{"Action":"pa

Not to be trusted:
  a line is no event of go test: "{\"Action\":\"pa"
1 passed, 0 failed, 0 skipped
`,
			code: 1,
		},
		"fails outside of a test": {
			in: pass + `{"Action":"output",` + p + `,"Output":"goleak: found\n"}` + "\n" + strings.Replace(end, "pass", "fail", 1),
			want: `goleak: found
FAIL  engine                          1.2s

Failed:
  engine (outside of a test)
1 passed, 1 failed, 0 skipped
`,
			code: 1,
		},
		"subtests count, parents do not": {
			in: pass + `{"Action":"run",` + p + `,"Test":"TestA/x"}
{"Action":"pass",` + p + `,"Test":"TestA/x"}
{"Action":"run",` + p + `,"Test":"TestA/y"}
{"Action":"output",` + p + `,"Test":"TestA/y","Output":"    a_test.go:7: needs a kernel\n"}
{"Action":"skip",` + p + `,"Test":"TestA/y"}
{"Action":"run",` + p + `,"Test":"TestB"}
{"Action":"output",` + p + `,"Test":"TestB","Output":"    b_test.go:7: \n"}
{"Action":"skip",` + p + `,"Test":"TestB"}
` + end,
			want: `ok    engine                          1.2s  3 tests

Skipped:
  engine TestA/y: needs a kernel
  engine TestB: no reason given
1 passed, 0 failed, 2 skipped
`,
		},
		"a panic leaves a test unfinished": {
			in: `{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"output",` + p + `,"Test":"TestA","Output":"panic: x\n"}
` + strings.Replace(end, "pass", "fail", 1),
			want: `panic: x
FAIL  engine                          1.2s

Failed:
  engine TestA (did not finish)
    panic: x
0 passed, 1 failed, 0 skipped
`,
			code: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, code := reportOf(t, tt.in)
			if diff := cmp.Diff(tt.want, out); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
		})
	}
}

func TestReadError(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := run(files{}, iotest.ErrReader(errors.New("the pipe broke")), &stdout, &stderr); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(stderr.String(), "the pipe broke") {
		t.Errorf("stderr %q does not name the cause", stderr.String())
	}
}

// TestGoTest runs the real go test, so that a Go release that changes its
// events is noticed here and not by a report that stays silent.
func TestGoTest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module " + module + "\n\ngo 1.26\n",
		"good/a_test.go":  "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\nfunc TestSkip(t *testing.T) { t.Skip(\"no moon tonight\") }\n",
		"bad/a_test.go":   "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"expected this\") }) }\n",
		"panic/a_test.go": "package panic\n\nimport \"testing\"\n\nfunc TestPanic(t *testing.T) { panic(\"on purpose\") }\n",
		"build/a_test.go": "package build\n\nimport \"testing\"\n\nfunc TestBuild(t *testing.T) { undefined() }\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	events, err := cmd.Output()
	if err == nil {
		t.Fatal("go test passed; three of its packages are broken")
	}
	out, code := reportOf(t, string(events))
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{
		"expected this", "panic: on purpose", "undefined: undefined",
		"  good TestSkip: no moon tonight\n", "  bad TestBad/sub\n", "  panic TestPanic", "  build of build (tests)\n",
		"ok    good ", "FAIL  bad ", "FAIL  build ", "\n1 passed, 3 failed, 1 skipped\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestAgain: a test that ran to its end may be run again, with its exact name, and
// nothing that would say the same thing twice.
func TestAgain(t *testing.T) {
	const p = `"Package":"github.com/cove-sandbox/cove/engine"`
	failed := func(name, output string) string {
		return `{"Action":"run",` + p + `,"Test":"` + name + `"}
{"Action":"output",` + p + `,"Test":"` + name + `","Output":"` + output + `"}
{"Action":"fail",` + p + `,"Test":"` + name + `"}
`
	}
	const end = `{"Action":"fail",` + p + "}\n"
	one := failed("TestA/x.y", "wrong") + failed("TestA", "")
	var many string
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		many += failed("Test"+n, "wrong")
	}
	for name, c := range map[string]struct{ in, want string }{
		"one":       {one + end, "github.com/cove-sandbox/cove/engine\t^TestA$/^x\\.y$\n"},
		"too many":  {many + end, ""},
		"a race":    {failed("TestA", "WARNING: DATA RACE") + end, ""},
		"a leak":    {one + `{"Action":"output",` + p + `,"Output":"goleak: Errors\n"}` + "\n" + end, ""},
		"a panic":   {one + `{"Action":"run",` + p + `,"Test":"TestB"}` + "\n" + end, ""},
		"cut off":   {one, ""},
		"a build":   {one + end + `{"Action":"build-fail","ImportPath":"x"}` + "\n", ""},
		"nowhere":   {end, ""},
		"all well":  {strings.ReplaceAll(one+end, `"fail"`, `"pass"`), ""},
		"not a run": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list := filepath.Join(t.TempDir(), "again")
			run(files{again: list}, strings.NewReader(c.in), io.Discard, io.Discard)
			got, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWanted: what was to be run and did not pass is not forgotten.
func TestWanted(t *testing.T) {
	const p = `"Package":"github.com/cove-sandbox/cove/engine"`
	const events = `{"Action":"run",` + p + `,"Test":"TestA"}
{"Action":"pass",` + p + `,"Test":"TestA"}
{"Action":"pass",` + p + `}
`
	for want, code := range map[string]int{"^TestA$": 0, "^TestA$/^x$": 1, "^TestB$": 1} {
		list := filepath.Join(t.TempDir(), "again")
		if err := os.WriteFile(list, []byte("github.com/cove-sandbox/cove/engine\t"+want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if got := run(files{wanted: list}, strings.NewReader(events), &out, io.Discard); got != code {
			t.Errorf("%s: exit code %d, want %d\n%s", want, got, code, out.String())
		}
	}
	if got := run(files{wanted: filepath.Join(t.TempDir(), "none")}, strings.NewReader(events), io.Discard, io.Discard); got != 1 {
		t.Errorf("a list that is not there: exit code %d", got)
	}
}

func TestLines(t *testing.T) {
	long := "=== RUN   TestA\n" + strings.Repeat("early\n", 20) + strings.Repeat("late\n", maxSaid)
	got := lines([]failure{{"a TestA", long}, {name: "build of b"}})
	want := append([]string{"a TestA"}, slices.Repeat([]string{"  late"}, maxSaid)...)
	if diff := cmp.Diff(append(want, "build of b"), got); diff != "" {
		t.Error("lines (-want +got):\n" + diff)
	}
}
