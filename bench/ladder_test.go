package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

// pretendEngine answers as an engine does to an exec, or with what is wrong.
func pretendEngine(t *testing.T, state string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "POST /containers/box/exec":
			_, _ = w.Write([]byte(`{"Id":"x"}`))
		case "POST /exec/x/start":
			_, _ = w.Write([]byte("what the program says"))
		case "GET /exec/x/json":
			if state == "" {
				http.Error(w, "no such exec", http.StatusNotFound)
				return
			}
			_, _ = w.Write([]byte(state))
		default:
			http.Error(w, r.URL.Path, http.StatusTeapot)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// programs puts scripts first in the PATH.
func programs(t *testing.T, scripts map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for name, text := range scripts {
		if err := os.Rename(script(t, name, text), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	return bin
}

// The rows are there, on providers that pretend; the numbers are not looked at.
func TestDockerRows(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	programs(t, map[string]string{"docker": `echo "$@" >>` + calls + `; case $* in *--detach*) echo box;; esac`})
	host := "tcp://" + strings.TrimPrefix(pretendEngine(t, `{"ExitCode":0}`).URL, "http://")
	rows, timings, err := dockerRows(t.Context(), dockerOptions{host: host, image: "image", rounds: 2}, openFake, openFake)
	if err != nil || len(rows) != 2 || len(timings) != 9 {
		t.Fatalf("%+v, %d timings, %v", rows, len(timings), err)
	}
	if table := renderLadder("about", timings); strings.Count(table, "\n") != 11 || !strings.Contains(table, "| fake: true in a live session | ") {
		t.Errorf("the table is\n%s", table)
	}
	said, err := os.ReadFile(calls)
	if err != nil || !strings.Contains(string(said), "rm --force box") {
		t.Errorf("the container that was compared with is left: %s %v", said, err)
	}
}

func TestDockerRowsSayWhatIsWrong(t *testing.T) {
	o := dockerOptions{host: "ssh://elsewhere", rounds: 1}
	if _, _, err := dockerRows(t.Context(), o, openFake, openFake); err == nil || !strings.Contains(err.Error(), "unix://") {
		t.Errorf("an address of another kind: %v", err)
	}
	programs(t, map[string]string{"docker": "exit 1"})
	o.host = "unix:///nowhere"
	if _, _, err := dockerRows(t.Context(), o, openFake, openFake); err == nil || !strings.Contains(err.Error(), "to compare with") {
		t.Errorf("no engine: %v", err)
	}
}

func TestDockerExec(t *testing.T) {
	for state, want := range map[string]string{
		`{"ExitCode":0}`: "",
		`{"ExitCode":3}`: "exit code 3",
		`{"Running":1}`:  "unmarshal",
		"":               "no such exec",
	} {
		api, err := newDockerAPI(pretendEngine(t, state).URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := api.exec(t.Context(), "box", "true"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", state, err, want)
		}
		if err := api.exec(t.Context(), "other", "true"); err == nil || !strings.Contains(err.Error(), "418") {
			t.Errorf("a container that is not there: %v", err)
		}
	}
}

func TestDockerExecOverASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(pretendEngine(t, `{}`).Config.Handler)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	api, err := newDockerAPI("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer api.client.CloseIdleConnections()
	if err := api.exec(t.Context(), "box", "true"); err != nil {
		t.Error(err)
	}
}

func TestGvisorRows(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	bin := programs(t, map[string]string{"runsc": `echo "$@" >>` + calls})
	rows, timings, err := gvisorRows(t.Context(), gvisorOptions{runsc: filepath.Join(bin, "runsc"), rounds: 2}, openFake, openFake)
	if err != nil || len(rows) != 2 || len(timings) != 9 {
		t.Fatalf("%+v, %d timings, %v", rows, len(timings), err)
	}
	said, err := os.ReadFile(calls)
	if err != nil || !strings.Contains(string(said), "delete --force cove-bench") {
		t.Errorf("the sandbox that was compared with is left: %s %v", said, err)
	}
	if _, _, err := gvisorRows(t.Context(), gvisorOptions{runsc: filepath.Join(bin, "none"), rounds: 1}, openFake, openFake); err == nil {
		t.Error("a runsc that is not there is measured")
	}
}

func TestBundle(t *testing.T) {
	dir := t.TempDir()
	if err := writeBundle(dir, "true"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil || !json.Valid(text) || !strings.Contains(string(text), `"args":["true"]`) {
		t.Errorf("%s %v", text, err)
	}
	if err := writeBundle(dir, "true"); err == nil {
		t.Error("a second one is written over the first")
	}
}

func TestRungSaysWhatIsWrong(t *testing.T) {
	broken := errors.New("broken")
	none := func(string) (cove.Provider, error) { return nil, broken }
	poor := func(dir string) (cove.Provider, error) {
		return fake.New(fake.Config{Dir: dir, Powers: []cove.Power{}})
	}
	for name, c := range map[string]struct {
		ours, local opener
		want        string
	}{
		"ours does not open":  {none, openFake, "broken"},
		"local does not open": {openFake, none, "broken"},
		"there is no pool":    {poor, openFake, "prepares no sandboxes"},
	} {
		if _, _, err := (rung{rounds: 1}).measure(t.Context(), c.ours, c.local); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// What is not here is said; what was asked for and is not here is an error.
func TestPartsThatAreNotHere(t *testing.T) {
	for name, part := range map[string]func(context.Context, options) (string, []row, error){partGvisor: gvisorPart, partDocker: dockerPart} {
		if text, rows, err := part(t.Context(), options{}); err != nil || len(rows) != 0 || !strings.Contains(text, "The part "+name+" was not measured") {
			t.Errorf("%s: %q, %v, %v", name, text, rows, err)
		}
		if _, _, err := part(t.Context(), options{only: name}); err == nil {
			t.Errorf("%s was asked for, is not here, and that is no error", name)
		}
	}
}
