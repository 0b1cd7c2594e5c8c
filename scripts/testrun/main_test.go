package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func reportOf(t *testing.T, in string) (out string, code int) {
	t.Helper()
	var stdout strings.Builder
	r := newReport(&stdout)
	if err := r.read(strings.NewReader(in)); err != nil {
		t.Errorf("read: %v", err)
	}
	r.endPackages()
	if !r.finish() {
		code = 1
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
Invalid run:
  no test ran
0 passed, 0 failed, 0 skipped
`,
			code: 1,
		},
		"package without tests": {
			in: `{"Action":"start",` + p + "}\n" + `{"Action":"skip",` + p + "}\n",
			want: `
Invalid run:
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

Invalid run:
  the events of engine end in the middle
1 passed, 1 failed, 0 skipped
`,
			code: 1,
		},
		"cut within an event": {
			in: pass + end + `{"Action":"pa`,
			want: `ok    engine                          1.2s  1 tests
{"Action":"pa

Invalid run:
  a line is not an event of go test: "{\"Action\":\"pa"
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
  engine TestA (did not finish) (a panic: never run again)
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
	err := newReport(io.Discard).read(iotest.ErrReader(errors.New("the pipe broke")))
	if err == nil || !strings.Contains(err.Error(), "the pipe broke") {
		t.Errorf("error %v does not name the cause", err)
	}
}

// testModule writes a module with tests that fail in all ways and returns the result
// of a run of it with the real go test: a Go release that changes its events is noticed
// here.
func testModule(t *testing.T, known string, files map[string]string) (out string, code int) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module " + module + "\n\ngo 1.26\n"
	files["known.md"] = "# Tests\n\n" + knownHeading + "\n\n| test | cause |\n|---|---|\n| `" + known + "` | slow |\n"
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	var stdout, stderr strings.Builder
	code = run(t.Context(), []string{"-tier=gate", "-known=known.md", "-events=events.json", "./..."}, &stdout, &stderr)
	if stderr.String() != "" {
		t.Logf("stderr: %s", stderr.String())
	}
	return stdout.String(), code
}

func wantLines(t *testing.T, out string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestGoTest(t *testing.T) {
	out, code := testModule(t, "bad TestOther", map[string]string{
		"good/a_test.go":  "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\nfunc TestSkip(t *testing.T) { t.Skip(\"no such device\") }\nfunc TestFull(t *testing.T) { if testing.Short() { t.Skip(\"full tier: TestGood\") } }\n",
		"bad/a_test.go":   "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"expected this\") }) }\n",
		"panic/a_test.go": "package panic\n\nimport \"testing\"\n\nfunc TestPanic(t *testing.T) { panic(\"on purpose\") }\n",
		"build/a_test.go": "package build\n\nimport \"testing\"\n\nfunc TestBuild(t *testing.T) { undefined() }\n",
	})
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	wantLines(t, out, "expected this", "panic: on purpose", "undefined: undefined",
		"  good TestSkip: no such device\n", "  bad TestBad/sub\n", "  panic TestPanic", "  build of build (tests)\n",
		"ok    good ", "FAIL  bad ", "FAIL  build ", "\n1 tests of the full tier were not run", "\n1 passed, 3 failed, 1 skipped\n")
}

// late fails on its first run and passes on the second; broken fails on every run.
const (
	late = "package late\n\nimport (\"os\"; \"testing\")\n\nfunc TestLate(t *testing.T) { t.Run(\"a.b\", func(t *testing.T) {\n" +
		"if _, err := os.Stat(\"seen\"); err != nil { _ = os.WriteFile(\"seen\", nil, 0o600); t.Fatal(\"too late\") }; t.Log(\"in time\") }) }\n"
	broken = "package broken\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Error(\"wrong every time\") }\n"
)

func TestFlaky(t *testing.T) {
	t.Run("passes when run again", func(t *testing.T) {
		out, code := testModule(t, "late TestOther", map[string]string{"late/a_test.go": late})
		if code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		wantLines(t, out, "\nFLAKY:\n  late TestLate/a.b\n", "too late", "in time", "\n1 passed, 0 failed, 0 skipped, 1 flaky\n")
	})
	t.Run("was flaky before", func(t *testing.T) {
		out, code := testModule(t, "late TestLate/a.b", map[string]string{"late/a_test.go": late})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "is flaky again: find the cause", "\n0 passed, 1 failed, 0 skipped, 1 flaky\n")
	})
	t.Run("was flaky before, and its parent fails too", func(t *testing.T) {
		parent := strings.Replace(late, "in time\") }) }", "in time\") }); if _, err := os.Stat(\"mine\"); err != nil { _ = os.WriteFile(\"mine\", nil, 0o600); t.Error(\"my own\") } }", 1)
		out, code := testModule(t, "late TestLate/a.b", map[string]string{"late/a_test.go": parent})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "is flaky again: find the cause")
	})
	t.Run("fails every time", func(t *testing.T) {
		out, code := testModule(t, "late TestOther", map[string]string{"broken/a_test.go": broken, "late/a_test.go": late})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "  broken TestBroken\n", "\n1 passed, 1 failed, 0 skipped, 1 flaky\n")
	})
	t.Run("is severe", func(t *testing.T) {
		out, code := testModule(t, "late TestOther", map[string]string{"late/a_test.go": strings.Replace(late, "TestLate", "TestTenants", 1)})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "late TestTenants/a.b (a tenant: never run again)", "\n0 passed, 1 failed, 0 skipped\n")
	})
	for name, c := range map[string]struct{ source, want string }{
		"panics when run again":   {strings.Replace(late, "t.Log(\"in time\")", "if _, err := os.Stat(\"twice\"); err != nil { _ = os.WriteFile(\"twice\", nil, 0o600); panic(\"worse\") }", 1), "panic: worse"},
		"fails outside of a test": {late + "\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(1) }\n", "late (outside of a test)"},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := testModule(t, "late TestOther", map[string]string{"late/a_test.go": c.source})
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			wantLines(t, out, c.want, "\n0 passed, 1 failed, 0 skipped\n")
		})
	}
	t.Run("leaks when no test fails", func(t *testing.T) {
		main := "\nfunc TestMain(m *testing.M) { code := m.Run(); if code == 0 && len(os.Args) < 7 { println(\"goleak: a goroutine\"); code = 1 }; os.Exit(code) }\n"
		out, code := testModule(t, "late TestOther", map[string]string{"late/a_test.go": late + main})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "\nRunning late again as a whole\n", "late (outside of a test)")
	})
	t.Run("another test fails when its package is run again", func(t *testing.T) {
		other := "\nfunc TestOther(t *testing.T) { if _, err := os.Stat(\"seen\"); err != nil { return }; " +
			"if _, err := os.Stat(\"other\"); err != nil { _ = os.WriteFile(\"other\", nil, 0o600); t.Fatal(\"late, too\") } }\n"
		out, code := testModule(t, "late TestNone", map[string]string{"late/a_test.go": strings.Replace(late, "func TestLate", other+"func TestLate", 1)})
		if code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		wantLines(t, out, "\n  late TestOther\n", "late, too", "in the run before", "\n2 passed, 0 failed, 0 skipped, 2 flaky\n")
	})
	t.Run("its package never passes as a whole", func(t *testing.T) {
		other := "\nfunc TestOther(t *testing.T) { if _, err := os.Stat(\"seen\"); err == nil { t.Error(\"wrong once it was seen\") } }\n"
		out, code := testModule(t, "late TestNone", map[string]string{"late/a_test.go": strings.Replace(late, "func TestLate", other+"func TestLate", 1)})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "late did not pass as a whole: nothing has checked it for leaks")
	})
	t.Run("a parent with an assertion of its own", func(t *testing.T) {
		parent := strings.Replace(late, "in time\") }) }", "in time\") }); if _, err := os.Stat(\"mine\"); err != nil { _ = os.WriteFile(\"mine\", nil, 0o600); t.Error(\"my own\") } }", 1)
		out, code := testModule(t, "late TestOther", map[string]string{"late/a_test.go": parent})
		if code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		wantLines(t, out, "\nFLAKY:\n  late TestLate\n", "my own", "too late", "\n1 passed, 0 failed, 0 skipped, 1 flaky\n")
	})
	t.Run("is skipped when run again", func(t *testing.T) {
		skips := strings.Replace(late, "t.Log(\"in time\")", "t.Skip(\"no engine\")", 1)
		out, code := testModule(t, "late TestOther", map[string]string{"late/a_test.go": skips})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "\n0 passed, 1 failed, 0 skipped\n")
	})
	t.Run("another test is skipped when run again", func(t *testing.T) {
		other := "\nfunc TestOther(t *testing.T) { if _, err := os.Stat(\"other\"); err == nil { t.Skip(\"no engine\") }; _ = os.WriteFile(\"other\", nil, 0o600) }\n"
		out, code := testModule(t, "late TestNone", map[string]string{"late/a_test.go": late + other})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "skipped only when its package was run again: late TestOther: no engine")
	})
	t.Run("no test runs", func(t *testing.T) {
		none := "package none\n\nimport (\"os\"; \"testing\")\n\nfunc TestNone(t *testing.T) { t.Error(\"unseen\") }\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"
		out, code := testModule(t, "late TestOther", map[string]string{"none/a_test.go": none, "good/a_test.go": "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\n"})
		if code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		wantLines(t, out, "  none passed, and no test of it ran\n")
	})
	t.Run("no list", func(t *testing.T) {
		if _, err := readKnown(filepath.Join(t.TempDir(), "none.md")); err == nil {
			t.Error("a page that does not exist is read")
		}
		page := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(page, []byte(knownHeading+"\n\n| `a TestA` | then |\n| `b TestB` and `TestC` | then |\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readKnown(page); err == nil || !strings.Contains(err.Error(), "TestC") {
			t.Errorf("a row that names two tests: %v", err)
		}
	})
}

// TestNoRerun: a failure that is not an assertion, or one of many, is not run again. The
// commands are empty, so a rerun would be an error.
func TestNoRerun(t *testing.T) {
	const p = `"Package":"github.com/cove-sandbox/cove/engine"`
	failed := func(name, output string) string {
		return `{"Action":"run",` + p + `,"Test":"` + name + `"}
{"Action":"output",` + p + `,"Test":"` + name + `","Output":"` + output + `"}
{"Action":"fail",` + p + `,"Test":"` + name + `"}
`
	}
	const end = `{"Action":"fail",` + p + "}\n"
	one := failed("TestA/x.y", "wrong") + failed("TestA", "")
	for name, in := range map[string]string{
		"too many":                             failed("Test1", "") + failed("Test2", "") + failed("Test3", "") + failed("Test4", "") + end,
		"a parent and three of its tests":      `{"Action":"run",` + p + `,"Test":"TestA"}` + "\n" + failed("TestA/1", "") + failed("TestA/2", "") + failed("TestA/3", "") + failed("TestA", "    a_test.go:7: own") + end,
		"four tests of another process":        failed("TestA", "--- FAIL: TestB/1\\n--- FAIL: TestB/2\\n--- FAIL: TestB/3\\n--- FAIL: TestB/4\\n--- FAIL: TestB\\n--- FAIL: TestA") + end,
		"a race":                               failed("TestA", "WARNING: DATA RACE") + end,
		"a race in the output of another test": `{"Action":"output",` + p + `,"Test":"TestB","Output":"WARNING: DATA RACE\n"}` + "\n" + `{"Action":"pass",` + p + `,"Test":"TestB"}` + "\n" + one + end,
		"a race in a package that passes":      `{"Action":"output",` + p + `,"Test":"TestB","Output":"WARNING: DATA RACE\n"}` + "\n" + `{"Action":"pass",` + p + `,"Test":"TestB"}` + "\n" + `{"Action":"pass",` + p + "}\n",
		"a panic that a server recovered":      failed("TestA", "level=ERROR msg=\\\"request panicked\\\"") + end,
		"a panic in net/http":                  failed("TestA", "http: panic serving 127.0.0.1:1") + end,
		"processes that may be left":           failed("TestA", "kill: processes may be left, others are made") + end,
		"files that are left":                  failed("TestA", "left: [box]") + end,
		"a process that is there":              failed("TestA", "process sleep is still there") + end,
		"another tenant's sandbox in an SDK":   failed("TestA", "other_tenant: fail it was found") + end,
		"a race that is only noticed":          failed("TestA", "race detected during execution of test") + end,
		"a leak of one test":                   failed("TestA", "found unexpected goroutines:") + end,
		"a leak of processes":                  failed("TestA", "2 processes are left") + end,
		"an attack in another process":         failed("TestA", "--- FAIL: TestOrdinary/isolation/mounts (0.1s)") + end,
		"failed once of several":               failed("TestA", "") + `{"Action":"pass",` + p + `,"Test":"TestA"}` + "\n" + failed("TestB", "panic: x") + end,
		"a leak":                               one + `{"Action":"output",` + p + `,"Output":"goleak: Errors\n"}` + "\n" + end,
		"a panic":                              one + `{"Action":"run",` + p + `,"Test":"TestB"}` + "\n" + end,
		"cut off":                              one,
		"a build":                              one + end + `{"Action":"build-fail","ImportPath":"x"}` + "\n",
		"nowhere":                              end,
		"attack":                               failed("TestSuite/escape/mount", "") + end,
		"policy":                               failed("TestCommandPolicy", "") + end,
		"data":                                 failed("TestWalkRecovery", "") + end,
	} {
		t.Run(name, func(t *testing.T) {
			r := newReport(io.Discard)
			if err := r.read(strings.NewReader(in)); err != nil {
				t.Fatal(err)
			}
			r.endPackages()
			if err := r.rerun(t.Context(), nil, io.Discard); err != nil {
				t.Errorf("it was run again: %v", err)
			}
			if r.finish() {
				t.Error("the run passed")
			}
		})
	}
	for _, flag := range []string{"-failfast", "-count=2", "--cpu=1,2"} {
		r := newReport(io.Discard)
		_ = r.read(strings.NewReader(one + end))
		if r.mayRerun([]command{{flags: []string{"-short", "-count=1", flag}}}) {
			t.Errorf("with %s a failed test is run again", flag)
		}
	}
	r := newReport(io.Discard)
	_ = r.read(strings.NewReader(one + end))
	if err := r.rerun(t.Context(), nil, io.Discard); err == nil {
		t.Error("a failed assertion was not run again")
	}
}

func TestPlan(t *testing.T) {
	t.Chdir("../..")
	o := options{full: "./store/...", cover: "profiles", duckdb: true}
	commands, err := o.plan(t.Context(), []string{"-count=1"}, []string{"./engine", "./internal/guest", "./store/memory", "./internal/policy", "./internal/clustertest"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range commands {
		got = append(got, fmt.Sprintf("%s short=%v race=%v", strings.ReplaceAll(strings.Join(c.packages, " "), module+"/", ""),
			slices.Contains(c.flags, "-short"), slices.Contains(c.flags, "-race")))
	}
	detector := raceDetector(t.Context())
	want := []string{
		"internal/policy short=true race=false",
		fmt.Sprintf("engine short=true race=%v", detector),
		fmt.Sprintf("internal/guest short=true race=%v", detector),
		fmt.Sprintf("store/memory short=false race=%v", detector),
		"internal/clustertest short=true race=false",
		"./... short=true race=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("commands (-want +got):\n" + diff)
	}
	for _, c := range commands[:5] {
		profile := strings.Join(c.profile, " ")
		if c.packages[0] == module+"/internal/guest" {
			if profile != "" {
				t.Errorf("internal/guest writes a profile: %s", profile)
			}
			continue
		}
		if forks := strings.Contains(profile, "/internal/linux/"); forks || strings.Contains(profile, c.packages[0]) != slices.Contains(c.flags, "-race") {
			t.Errorf("%v with %v writes a profile of %s", c.packages, c.flags, profile)
		}
	}
	if _, err := (options{full: "./engine,./client"}).plan(t.Context(), nil, []string{"./engine"}); err == nil || !strings.Contains(err.Error(), "COVE_FULL names ./client") {
		t.Errorf("COVE_FULL with a package that does not run: %v", err)
	}
	if got := (options{installed: "1"}).flags(true, false, []string{"-skip=TestA"}); !slices.Contains(got, "-skip=TestA|^installed:1$") {
		t.Errorf("the flags of go test lack what is installed, or what the user skips: %q", got)
	}
	if _, err := o.plan(t.Context(), nil, []string{"./nowhere"}); err == nil {
		t.Error("a package that does not exist is no error")
	}
}

// TestListsNamePackages: a package that was renamed must not lose the race detector.
func TestListsNamePackages(t *testing.T) {
	t.Chdir("../..")
	for _, name := range slices.Concat(raced, longest, alone, forking, uncovered) {
		if _, err := os.Stat(strings.TrimSuffix(name, "/...")); err != nil {
			t.Errorf("a list of plan.go names %s: %v", name, err)
		}
	}
}

func TestLines(t *testing.T) {
	long := "=== RUN   TestA\n" + strings.Repeat("early\n", 20) + strings.Repeat("late\n", maxSaid)
	got := lines([]failure{{name: "a TestA", said: long}, {name: "build of b"}})
	want := append([]string{"a TestA"}, slices.Repeat([]string{"  late"}, maxSaid)...)
	if diff := cmp.Diff(append(want, "build of b"), got); diff != "" {
		t.Error("lines (-want +got):\n" + diff)
	}
	got = lines([]failure{{name: "a TestA", said: strings.Repeat("x", maxLine+1)}})
	if diff := cmp.Diff([]string{"a TestA", "  " + strings.Repeat("x", maxLine) + "…"}, got); diff != "" {
		t.Error("a long line (-want +got):\n" + diff)
	}
}
