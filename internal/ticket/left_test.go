package ticket_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/ticket"
)

// restarted is a desk as the next process has it.
func restarted(t *testing.T, dir string) (*ticket.Book, *ticket.Desk) {
	t.Helper()
	b, err := ticket.Open(filepath.Join(dir, "link.key"), filepath.Join(dir, "signed-out"))
	if err != nil {
		t.Fatal(err)
	}
	return b, ticket.NewDesk(b, somebody)
}

func entered(t *testing.T, b *ticket.Book, d *ticket.Desk) string {
	t.Helper()
	in, _, err := d.Enter(t.Context(), b.Issue(grant(cove.GrantLogin)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func isIn(t *testing.T, d *ticket.Desk, in, why string) {
	t.Helper()
	if _, p, _, err := d.Redeem(t.Context(), in, cove.GrantConsole); err != nil || p.Name != "key" {
		t.Errorf("%s: %+v, %v", why, p, err)
	}
}

// TestSignedInAcrossARestart: who signed in is, who signed out is not, and a link to
// sign in is good for one process.
func TestSignedInAcrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b, d := restarted(t, dir)
		stays, leaves, later := entered(t, b, d), entered(t, b, d), entered(t, b, d)
		unused := b.Issue(grant(cove.GrantLogin))
		if err := d.Leave(t.Context(), leaves); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, d = restarted(t, dir)
			isIn(t, d, stays, "after a restart")
			refused(t, d, leaves, cove.GrantConsole, "signed out before a restart")
			refused(t, d, unused, cove.GrantLogin, "a login link after a restart")
		}
		if err := d.Leave(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		if err := d.Leave(t.Context(), leaves); err != nil {
			t.Errorf("who is out leaves again: %v", err)
		}
		b, d = restarted(t, dir)
		refused(t, d, later, cove.GrantConsole, "signed out after a restart")
		isIn(t, d, entered(t, b, d), "signed in after a restart")
		<-time.After(cove.ConsoleTTL)
		refused(t, d, stays, cove.GrantConsole, "expired")
		_, d = restarted(t, dir)
		refused(t, d, leaves, cove.GrantConsole, "signed out and expired")
		refused(t, d, stays, cove.GrantConsole, "expired after a restart")
		text, err := os.ReadFile(filepath.Join(dir, "signed-out"))
		if err != nil || strings.Count(string(text), "\n") != 1 {
			t.Errorf("what has expired is kept: %q %v", text, err)
		}
	})
}

// TestWithoutTheFileAllAreOut: whatever becomes of the file, nobody who signed out
// comes back by it.
func TestWithoutTheFileAllAreOut(t *testing.T) {
	for name, damage := range map[string]func(text string) string{
		"gone":             func(string) string { return "" },
		"empty":            func(string) string { return "\n" },
		"cut short":        func(text string) string { return text[:len(text)-2] },
		"without its line": func(text string) string { return strings.SplitAfter(text, "\n")[1] },
		"with another":     func(text string) string { return text + "what is this\n" },
		"with bad letters": func(text string) string { return text + "? 1 ?\n" },
		"of another kind":  func(text string) string { return strings.Replace(text, "out 1", "out 2", 1) },
		"without an end":   func(text string) string { return text + strings.Repeat("x", 1<<17) + "\n" },
		"of another chance": func(text string) string {
			return strings.Replace(text, text[len("cove signed out 1 "):][:22], strings.Repeat("A", 22), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "signed-out")
			b, d := restarted(t, dir)
			stays, leaves := entered(t, b, d), entered(t, b, d)
			if err := d.Leave(t.Context(), leaves); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(damage(string(text))), 0o600)); err != nil {
				t.Fatal(err)
			}
			b, d = restarted(t, dir)
			refused(t, d, leaves, cove.GrantConsole, "signed out")
			refused(t, d, stays, cove.GrantConsole, "signed in")
			in := entered(t, b, d)
			_, d = restarted(t, dir)
			isIn(t, d, in, "signed in since")
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
		})
	}
}

// TestSignedOutOnlyWhenWritten: a browser that could not be written down is out, and not
// told so.
func TestSignedOutOnlyWhenWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "signed-out")
	b, d := restarted(t, dir)
	in := entered(t, b, d)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Leave(t.Context(), in); !errors.Is(err, cove.Unavailable) || !strings.Contains(fmt.Sprint(err), "signed-out") {
			t.Errorf("signed out without a file: %v", err)
		}
	}
	refused(t, d, in, cove.GrantConsole, "signed out, which is not written down")
	if _, err := ticket.Open(filepath.Join(dir, "link.key"), path); !errors.Is(err, cove.Unavailable) {
		t.Errorf("a directory in its place: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)); err != nil {
		t.Fatal(err)
	}
	if _, err := ticket.Open(filepath.Join(dir, "link.key"), path); !errors.Is(err, cove.Unavailable) {
		t.Errorf("a link in its place: %v", err)
	}
}

// TestTheFileStaysSmall: what has expired is not kept for as long as the server runs.
func TestTheFileStaysSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b, d := restarted(t, dir)
		for range 5 {
			for range 100 {
				if err := d.Leave(t.Context(), entered(t, b, d)); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(cove.ConsoleTTL)
		}
		text, err := os.ReadFile(filepath.Join(dir, "signed-out"))
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 350 {
			t.Errorf("the file has %d lines, %v", lines, err)
		}
	})
}
