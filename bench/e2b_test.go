package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/measure"
)

// pretender plays the program that uses E2B's client: it answers as a shell can.
const pretender = `#!/bin/sh
[ "$E2B_API_URL $E2B_SANDBOX_URL $E2B_API_KEY $NODE_PATH" = "http://x http://x key modules" ] || { echo "wrong: $E2B_API_URL $E2B_API_KEY" >&2; exit 1; }
while read -r line; do
  case $line in
  *'"run","times":2'*) echo '{"took":[1000,3000]}' ;;
  *'"row"'*) echo '{"lost":1,"why":"cut"}' ;;
  *'"open"'*) echo '{"error":"no room"}' ;;
  *'"watch"'*) echo 'what?' ;;
  *) echo "bye" >&2; exit 0 ;;
  esac
done
`

func TestE2BGuest(t *testing.T) {
	t.Parallel()
	h := &home{dir: t.TempDir()}
	node := filepath.Join(h.dir, "node")
	for name, text := range map[string]string{"cove.lock": `{"address":"http://x"}`, "admin.key": "key\n", "node": pretender} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g, err := e2bOptions{node: node, modules: "modules"}.begin(t.Context(), t.TempDir(), h)
	if err != nil {
		t.Fatal(err)
	}
	ran, err := g.ask("run", 2)
	if diff := cmp.Diff(guestAnswer{Took: measure.Series{1000, 3000}}, ran); diff != "" || err != nil {
		t.Error(diff, err)
	}
	lost, err := g.ask("row", 600)
	if r := lostRow("x", lost); err != nil || r.ok() || r.measured != "1 lost cut" {
		t.Errorf("%+v, %v", r, err)
	}
	for call, want := range map[string]string{"open": "no room", "watch": "invalid character"} {
		if _, err := g.ask(call, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if _, err := g.ask("close", 0); err == nil || !strings.Contains(err.Error(), "has ended: bye") {
		t.Errorf("after its end: %v", err)
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
}

func TestE2BNeedsThePackage(t *testing.T) {
	t.Parallel()
	if text, rows, err := e2bPart(t.Context(), options{}); err != nil || len(rows) != 0 || !strings.Contains(text, "was not measured") {
		t.Errorf("%q, %v, %v", text, rows, err)
	}
	if _, _, err := e2bPart(t.Context(), options{only: partE2B}); err == nil {
		t.Error("what was asked for is not missed")
	}
}
