package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/measure"
)

// script writes a program for the host.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMeasureLocal proves that everything is measured, on a pretend provider;
// the numbers are not looked at.
func TestMeasureLocal(t *testing.T) {
	_, err := measure.Bwrap(t.Context())
	linuxtest.Need(t, err)
	o := localOptions{rounds: 3, churn: 5, cove: script(t, "cove", `test "$1" = run && test -n "$COVE_HOME" && test "$SANDBOX_PROVIDER" = fake`)}
	f, err := measureLocal(t.Context(), o, openFake)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.rows(); err == nil || !strings.Contains(err.Error(), "as root") {
		t.Errorf("a provider without processes has a memory row: %v", err)
	}
	f.report.Memory.Processes = 1
	rows, err := f.rows()
	if err != nil || len(rows) != 8 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if r.name == "" || r.measured == "" || r.baseline == "" {
			t.Errorf("%+v lacks something", r)
		}
	}
	f.slow = []measure.Timing{{Name: "something slow", Median: 400, P95: 500, OverHost: 300}}
	table := renderPeers(f)
	for _, want := range []string{"| true in a live session | ", "| bwrap --unshare-all … true | ", "| cove run -- true, the whole command | ", "| something slow | 400.00 ms | 500.00 ms | 300.00 |  |\n", "| go-judge | not here: it could not be built | | | |"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	f.report.Timings = f.report.Timings[:1]
	if _, err := f.rows(); err == nil {
		t.Error("rows that were not measured are there")
	}
}

func TestMeasureLocalSaysWhatIsWrong(t *testing.T) {
	_, err := measure.Bwrap(t.Context())
	linuxtest.Need(t, err)
	broken := errors.New("broken")
	o := localOptions{rounds: 1, churn: 1, cove: script(t, "cove", "echo no luck >&2; exit 1")}
	if _, err := measureLocal(t.Context(), o, func(string) (cove.Provider, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a provider that does not open: %v", err)
	}
	if _, err := measureLocal(t.Context(), o, openFake); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a cove that does not work: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := measureLocal(t.Context(), o, openFake); err == nil || !strings.Contains(err.Error(), "apt-get install bubblewrap") {
		t.Errorf("no bubblewrap: %v", err)
	}
	if _, err := openLocal(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make bench") {
		t.Errorf("no lean agent: %v", err)
	}
}

func TestPeersThatAreHere(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{
		"isolate": "exit 0",
		"docker":  `case "$1$2" in info*) echo 28;; imageinspect) test "$3" = alpine;; esac`,
	} {
		if err := os.Rename(script(t, name, text), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	p := findPeers(t.Context(), filepath.Join(bin, "no-judge"), bin)
	defer p.close()
	if len(p.quick) != 1 || len(p.slow) != 1 || len(p.absent) != 1 || p.absent[0].name != "go-judge" {
		t.Fatalf("%+v", p)
	}
	slow, err := raceSlow(t.Context(), []measure.Contender{{Name: "slow", Run: func(context.Context) error { return nil }}})
	if err == nil {
		t.Errorf("without true in the PATH there is %v", slow)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	if slow, err := raceSlow(t.Context(), p.slow); err != nil || len(slow) != 1 || slow[0].Median <= 0 {
		t.Errorf("%v, %v", slow, err)
	}
}

func TestPeersThatDoNotWork(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{
		"isolate": "echo not as you; exit 1",
		"docker":  `test "$1" = info && echo 28`,
	} {
		if err := os.Rename(script(t, name, text), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	p := findPeers(t.Context(), "", bin)
	defer p.close()
	if len(p.quick)+len(p.slow) != 0 || len(p.absent) != 3 || !strings.Contains(p.absent[0].why, "not as you") || !strings.Contains(p.absent[2].why, "docker pull") {
		t.Errorf("%+v", p)
	}
}

func TestJudgeAnswers(t *testing.T) {
	for answer, ok := range map[string]bool{
		`[{"status":"Accepted","exitStatus":0}]`: true,
		`[{"status":"Internal Error"}]`:          false,
		`[]`:                                     false,
		`oops`:                                   false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/run" && r.Method == http.MethodPost {
				_, _ = w.Write([]byte(answer))
			}
		}))
		err := judgeTrue(t.Context(), s.Client(), strings.TrimPrefix(s.URL, "http://"))
		s.Close()
		if (err == nil) != ok {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
