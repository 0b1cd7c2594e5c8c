package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// told writes the history of a session that is opened and read, and returns its file.
func told(t *testing.T, status int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := history.NewWriter(f, history.Run{Seed: 7, Nodes: []string{"n1"}})
	for _, e := range []history.Event{
		{Client: "c1", Op: history.Open, Node: "n1", Session: "a", Status: 201, Created: true},
		{Client: history.Final, Op: history.Get, Node: "n1", Session: "a", Status: status},
	} {
		w.Call(&e)
		w.Return(&e)
	}
	if err := w.Err(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args       []string
		ok, failed bool
		says       string
	}{
		"good":     {args: []string{told(t, 200)}, ok: true, says: "seed 7: 1 sessions created, 0 lost, 1 there in the end"},
		"bad":      {args: []string{told(t, 500)}, says: "answers: "},
		"empty":    {args: []string{empty}, failed: true},
		"no file":  {args: []string{empty + "?"}, failed: true},
		"no names": {failed: true},
	} {
		var out bytes.Buffer
		ok, err := run(tt.args, &out)
		if ok != tt.ok || (err != nil) != tt.failed || !strings.Contains(out.String(), tt.says) {
			t.Errorf("%s: %v, %v, %s", name, ok, err, out.String())
		}
	}
}
