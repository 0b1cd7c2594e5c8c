package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
)

func TestContextsOfCode(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create")
	b.ok("code", "-s", id, "-l", "calc", "--context", "mine", "x = 42")
	if got := b.ok("sandbox", "code", "--context", "mine", id, "x + 1"); got != "43\n" {
		t.Errorf("the context has forgotten: %q", got)
	}
	b.fails(1, "x", "code", "-s", id, "-l", "CALC", "x")
	b.fails(125, "speaks calc", "code", "-s", id, "-l", "python", "--context", "mine", "x")
	b.fails(125, `"python" is unknown`, "code", "-s", id, "--context", "other", "x")
	b.fails(125, "--context: is of no use without a session", "code", "-l", "calc", "--context", "mine", "x")
	for _, args := range [][]string{{"--template", "python"}, {"--policy", "agent-bash"}, {"-e", "A=1"}, {"--memory", "1g"}, {"--network", "none"}} {
		b.fails(125, "--session: names a sandbox that is there", append(append([]string{"code", "-s", id, "-l", "calc"}, args...), "1")...)
	}
	b.fails(125, "there is no session", "code", "-s", nobody, "-l", "calc", "--context", "mine", "x")
}

func TestCodeAsText(t *testing.T) {
	b := served(t)
	// The provider that pretends has no Python: that is told as a text, too.
	for _, args := range [][]string{{"code", "--text", "1"}, {"code", "--text", "-s", b.id("sandbox", "create"), "1"}} {
		if got := b.ok(args...); got != `Execution failed: language: "python" is unknown; use one of calc`+"\n" {
			t.Errorf("%v: %q", args, got)
		}
	}
	if got := b.ok("code", "--text", "-s", nobody, "1"); !strings.HasPrefix(got, "Execution failed: there is no session") {
		t.Errorf("%q", got)
	}
	var x struct {
		Result   string `json:"result"`
		ExitCode int    `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(b.ok("--json", "code", "--text", "--timeout", "2s", "1")), &x); err != nil || x.ExitCode != -1 || x.Result == "" {
		t.Errorf("%+v, %v", x, err)
	}
	b.fails(125, "--text: is for Python", "code", "--text", "-l", "node", "1")
	b.fails(125, "--text: shows no images", "code", "--text", "--save", "x", "1")
	away := newBox(t)
	if got := away.ok("code", "--text", "--url", "http://127.0.0.1:1", "1"); !strings.Contains(got, "cannot be reached") {
		t.Errorf("%q", got)
	}
}

func TestImagesAreSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	png := base64.StdEncoding.EncodeToString([]byte("pixels"))
	values := []cove.Rich{{"text/plain": "1"}, {"image/png": png[:4] + "\n" + png[4:], "image/svg+xml": "<svg/>"}, {"image/jpeg": png}}
	for _, want := range []map[int][]string{
		{1: {"image-1.png", "image-1.svg"}, 2: {"image-1.jpg"}},
		{1: {"image-2.png", "image-2.svg"}, 2: {"image-2.jpg"}},
	} {
		got, err := cli.SaveImages(dir, values)
		for i, names := range want {
			for j := range names {
				want[i][j] = filepath.Join(dir, names[j])
			}
		}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
	if got := read(t, filepath.Join(dir, "image-1.png")); got != "pixels" {
		t.Errorf("%q", got)
	}
	if got := read(t, filepath.Join(dir, "image-1.svg")); got != "<svg/>" {
		t.Errorf("%q", got)
	}
	if _, err := cli.SaveImages(dir, []cove.Rich{{"image/png": "no!"}}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := cli.SaveImages(file, values); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("%v", err)
	}
	if got, err := cli.SaveImages("", values); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 6 {
		t.Errorf("%v, %v", entries, err)
	}
}
