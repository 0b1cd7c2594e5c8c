package sdk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestReadme runs the quick starts of the README as they are written: what they say
// to install, into a place with nothing else in it, and then their lines, which find
// cove in the PATH and start its server.
func TestReadme(t *testing.T) {
	needProvider(t, "local")
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Python", func(t *testing.T) {
		start := quickStartOf(t, string(text), "From Python", "python")
		asked, ok := strings.CutPrefix(start.install, "pip install ")
		if !ok {
			t.Fatalf("it says %q", start.install)
		}
		dir := t.TempDir()
		run(t, plain(), dir, python(t), "-m", "venv", "--without-pip", "venv")
		interpreter := filepath.Join(dir, "venv", "bin", "python")
		run(t, plain(), "..", withPip(t), "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-index", asked)
		start.run(t, dir, "start.py", interpreter)
	})
	t.Run("JavaScript", func(t *testing.T) {
		start := quickStartOf(t, string(text), "From TypeScript or JavaScript", "js")
		tree := providertest.Needs(t, "sdks", "COVE_TEST_TYPESCRIPT") // what the script prints is there, then
		dir := t.TempDir()
		install, named := strings.CutPrefix(start.install, "npm install --prefix my-app ")
		if !named {
			t.Fatalf("it says %q", start.install)
		}
		env := append(plain(), "HOME="+dir, "npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false")
		run(t, env, "..", "bash", "-euc", "npm install --prefix '"+dir+"' "+install)
		start.run(t, dir, "start.mjs", filepath.Join(tree, "bin", "node"))
	})
}

// quickStart is what to install, what to run, and what that prints.
type quickStart struct{ install, code, output string }

// quickStartOf finds the blocks of a section: one of each language.
func quickStartOf(t *testing.T, page, title, language string) quickStart {
	t.Helper()
	_, section, ok := strings.Cut(page, "\n## "+title+"\n")
	if !ok {
		t.Fatalf("there is no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	block := func(language string) string {
		before, after, ok := strings.Cut(section, "\n```"+language+"\n")
		text, _, closed := strings.Cut(after, "```\n")
		if !ok || !closed || strings.Contains(before+after, "\n```"+language+"\n") {
			t.Fatalf("the section %q has no block of %s, or more than one", title, language)
		}
		return text
	}
	return quickStart{strings.TrimSpace(block("console")), block(language), block("text")}
}

// run runs the lines in a folder.
func (q quickStart) run(t *testing.T, dir, name, interpreter string) {
	t.Helper()
	if lines := strings.Count(q.code, "\n") - strings.Count(q.code, "\n\n"); lines > 5 {
		t.Errorf("%d lines are no quick start", lines)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(q.code), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program.Cove(t), filepath.Join(dir, "cove")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(shortDir(t), "home")
	t.Cleanup(func() { endDaemon(t, home) })
	env := []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir, "COVE_HOME=" + home, "COVE_DAEMON_IDLE=60", "POOL_SIZE=0", "LANG=C.UTF-8"}
	if got := run(t, env, dir, interpreter, name); got != q.output {
		t.Errorf("it printed\n%s\nand not\n%s", got, q.output)
	}
}
