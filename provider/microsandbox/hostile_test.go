//go:build linux

package microsandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/microsandbox"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// impostor is a server that is healthy, and answers questions as it is told.
func impostor(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, method string, id int64)) microsandbox.Config {
	t.Helper()
	httpd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/health" {
			_, _ = w.Write([]byte(`{"message":"healthy"}`))
			return
		}
		var q struct {
			Method string `json:"method"`
			ID     int64  `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		answer(w, r, q.Method, q.ID)
	}))
	t.Cleanup(httpd.Close)
	none := filepath.Join(t.TempDir(), "agent") // it is never run
	if err := os.WriteFile(none, []byte("no agent"), 0o600); err != nil {
		t.Fatal(err)
	}
	return microsandbox.Config{Dir: providertest.Dir(t), Transport: "rpc", ServerURL: httpd.URL, APIKey: "msb_topsecret", Agent: none}
}

// A server that says what it was asked does not get the key into a log.
func TestAServerThatRepeatsTheKey(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, method string, id int64){
		"in a page": func(w http.ResponseWriter, r *http.Request, _ string, _ int64) {
			_, _ = fmt.Fprintf(w, "<html>you sent %v", r.Header["Authorization"])
		},
		"in an error": func(w http.ResponseWriter, r *http.Request, _ string, _ int64) {
			_ = json.NewEncoder(w).Encode(map[string]any{"error": "you sent " + r.Header.Get("Authorization"), "code": 5003})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := closed(t, opened(t, impostor(t, answer)))
			_, err := p.Create(t.Context(), cove.NewID(), spec())
			if err == nil || strings.Contains(err.Error(), "topsecret") || !strings.Contains(err.Error(), "you sent") {
				t.Errorf("it tells %v", err)
			}
		})
	}
}

// No list of machines is not an empty one.
func TestAStopWithoutAList(t *testing.T) {
	stopped := false
	p := closed(t, opened(t, impostor(t, func(w http.ResponseWriter, _ *http.Request, method string, id int64) {
		result := `{"sandboxes":[]}`
		if stopped = stopped || method == "sandbox.stop"; stopped {
			result = "null"
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","result":%s,"id":%d}`, result, id)
	})))
	if err := p.Remove(t.Context(), cove.NewID()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("nobody said that it is gone: %v", err)
	}
}

// A note that cannot be read does not keep its machine alive.
func TestANoteThatCannotBeRead(t *testing.T) {
	s, m, cfg := rehearsal(t)
	p := closed(t, opened(t, cfg))
	if err := p.Remove(t.Context(), cove.NewID()); err != nil { // makes the directory
		t.Fatal(err)
	}
	id := cove.NewID()
	if err := os.WriteFile(filepath.Join(cfg.Dir, string(id)+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := s.Asked("sandbox.stop")
	if err := p.Remove(t.Context(), id); err != nil || s.Asked("sandbox.stop") != before+1 {
		t.Errorf("%v, and %d stops", err, s.Asked("sandbox.stop")-before)
	}
	nothingLeft(t, m, cfg.Dir)
}

// script is a program that takes msb's place.
func script(t *testing.T, text string) microsandbox.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "msb")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncd "+filepath.Dir(path)+"\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte("no agent"), 0o600); err != nil {
		t.Fatal(err)
	}
	return microsandbox.Config{Dir: providertest.Dir(t), Transport: "cli", Program: path, Agent: agent}
}

// msb is told nothing of ours that it has no use for.
func TestTheEnvironmentOfMSB(t *testing.T) {
	for _, name := range []string{"E2B_API_KEY", "COVE_API_KEY", "MSB_API_KEY", "MSB_BACKEND", "SOME_TOKEN"} {
		t.Setenv(name, "topsecret")
	}
	t.Setenv("MSB_HOME", "/its/home")
	cfg := script(t, "env > seen\n")
	if caps, err := closed(t, opened(t, cfg)).Probe(t.Context()); err != nil || !caps.Ready {
		t.Fatalf("%+v, %v", caps, err)
	}
	seen, err := os.ReadFile(filepath.Join(filepath.Dir(cfg.Program), "seen"))
	if err != nil || strings.Contains(string(seen), "topsecret") || !strings.Contains(string(seen), "MSB_HOME=/its/home\n") || !strings.Contains(string(seen), "PATH=") {
		t.Errorf("it sees %s, %v", seen, err)
	}
}

// started waits until a script has written down the process that it began.
func started(t *testing.T, cfg microsandbox.Config) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(cfg.Program), "pid"))
	pid, nerr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || nerr != nil {
		t.Fatalf("%v, %v", err, nerr)
	}
	return pid
}

// busy reports whether a process does anything.
func busy(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// A program that is given up is ended with what it started: msb may be a script.
func TestAProgramThatHangsInAScript(t *testing.T) {
	cfg := script(t, "sleep 1000 & echo $! > pid; wait\n")
	caps, err := closed(t, opened(t, cfg)).Probe(t.Context())
	if err != nil || caps.Ready || !strings.Contains(caps.Why, "does not come to an end") {
		t.Errorf("%+v, %v", caps, err)
	}
	pid := started(t, cfg)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 300 {
		if !busy(pid) {
			return
		}
		<-tick.C
	}
	t.Error("what it started runs on")
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// A program that has ended well has, also when what it started holds its output.
func TestAProgramThatLeavesSomethingRunning(t *testing.T) {
	cfg := script(t, "sleep 1000 & echo $! > pid\n")
	caps, err := closed(t, opened(t, cfg)).Probe(t.Context())
	if err != nil || !caps.Ready {
		t.Errorf("%+v, %v", caps, err)
	}
	if pid := started(t, cfg); !busy(pid) {
		t.Error("what it started has ended")
	} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// What is not found need not be the machine.
func TestARemovalThatFails(t *testing.T) {
	for said, code := range map[string]cove.Code{
		"error: sandbox not found: x":           "",
		"error: library libkrunfw.so not found": cove.Unavailable,
	} {
		p := closed(t, opened(t, script(t, `[ "$1" = rm ] || exit 0; echo "`+said+`" >&2; exit 1`+"\n")))
		if err := p.Remove(t.Context(), cove.NewID()); cove.CodeOf(err) != code {
			t.Errorf("%s: %v", said, err)
		}
	}
}

func TestWrongSettings(t *testing.T) {
	for setting, cfg := range map[string]microsandbox.Config{
		"MSB_IMAGE":     {Dir: "/x", Image: "--privileged"},
		"MSB_NAMESPACE": {Dir: "/x", Namespace: "*"},
	} {
		if _, err := microsandbox.New(cfg); cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), setting) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// Who waits for a connection that another makes waits no longer than its own time.
func TestNobodyWaitsForAnother(t *testing.T) {
	t.Cleanup(microsandbox.HurryMail())
	th := stage(t)
	cfg := rpcConfig(t, th)
	var hangs atomic.Bool
	asked := make(chan struct{}, 1)
	away := &switchable{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hangs.Load() {
			th.server.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the caller is seen
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	})}
	httpd := httptest.NewServer(away)
	defer httpd.Close()
	cfg.ServerURL = httpd.URL
	p := closed(t, opened(t, cfg))
	s, err := p.Create(t.Context(), cove.NewID(), spec())
	if err != nil {
		t.Fatal(err)
	}
	proc, err := s.Start(t.Context(), cove.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	away.set(true)
	httpd.CloseClientConnections()
	if _, err := proc.Wait(t.Context()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("the program ends with %v", err)
	}
	hangs.Store(true)
	away.set(false)
	patient, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Files().Stat(patient, ".")
	}()
	<-asked // it connects
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Files().Stat(short, "."); cove.CodeOf(err) != cove.Timeout {
		t.Errorf("%v", err)
	}
	select {
	case <-done:
		t.Error("it waited for the other")
	default:
	}
	leave()
	<-done
	hangs.Store(false)
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, th.machines, cfg.Dir)
}
