package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestVerify(t *testing.T) {
	b := newBox(t)
	got := b.ok("verify")
	for _, words := range []string{
		"ATTACK", "STOPPED BY", "file_names", "names are resolved inside the sandbox",
		"exec, terminal, solo, kernel  not tried", "the boundary is none", "\nprovider fake, ",
	} {
		if !strings.Contains(got, words) {
			t.Errorf("no %q in\n%s", words, got)
		}
	}
	for line := range strings.Lines(b.ok("--json", "verify", "--provider", "fake")) {
		var f escape.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Attack == "" || f.Try == "" || f.Via == "" {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := os.Stat(b.home); !errors.Is(err, os.ErrNotExist) {
		t.Error("verify made COVE_HOME")
	}
	b.fails(2, `--provider: "podman" is unknown`, "verify", "--provider", "podman")
	b.fails(2, "takes no argument", "verify", "fake")
	b.fails(2, "cove verify attacks sandboxes of this machine", "verify", "--url", "http://127.0.0.1:1")
	t.Setenv("TMPDIR", "/nowhere/at/all")
	b.fails(125, "no room for temporary files", "verify")
}

func TestVerifyConcludes(t *testing.T) {
	found := []escape.Finding{
		{Attack: "a", Try: "x", Via: escape.Exec, Held: true, By: "EPERM"},
		{Attack: "a", Try: "x", Via: escape.Terminal, Held: true, By: "EPERM too"},
		{Attack: "b", Try: "y", Via: escape.Exec, Detail: "read \x1b[2J"},
		{Attack: "b", Try: "y", Via: escape.Terminal, Skipped: "no terminals"},
	}
	text, code := cli.ConcludeVerify("local", found)
	want := `ATTACK  BY              RESULT       TRIED  STOPPED BY
a       exec, terminal  held         x      EPERM
b       exec            got through  y      nothing: read \x1b[2J
b       terminal        not tried    y      no terminals

provider local, 4 attempts: 2 held, 1 got through, 1 not tried
`
	if text != want || code != 1 {
		t.Errorf("code %d\n%s", code, text)
	}
	if _, code := cli.ConcludeVerify("local", found[:2]); code != 0 {
		t.Errorf("code %d", code)
	}
}
