package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestHelpIsGolden(t *testing.T) {
	b := newBox(t)
	seen := map[string]bool{}
	for _, words := range cli.CommandPaths() {
		name := strings.Join(append([]string{"cove"}, words...), "_") + ".txt"
		seen[name] = true
		got := b.ok(append(words, "--help")...)
		path := filepath.Join("testdata", "help", name)
		if *update {
			write(t, path, got)
		}
		if diff := cmp.Diff(read(t, path), got); diff != "" {
			t.Errorf("%s is old; run go test ./internal/cli -update\n%s", path, diff)
		}
		for line := range strings.Lines(got) {
			if len(line) > 160 {
				t.Errorf("%s: a line of %d characters", name, len(line))
			}
		}
	}
	files, err := os.ReadDir(filepath.Join("testdata", "help"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("testdata/help/%s is of no command; remove it", f.Name())
		}
	}
}

func TestEveryCodeHasAnExitCode(t *testing.T) {
	want := map[cove.Code]int{
		cove.Invalid: 2, cove.Unauthenticated: 3, cove.Denied: 4, cove.NotFound: 5, cove.Conflict: 6, cove.Exhausted: 7,
		cove.Unsupported: 8, cove.Unavailable: 69, cove.Timeout: 124, cove.Canceled: 130, cove.Internal: 70,
	}
	for _, c := range cove.Codes() {
		if !cli.HasExitCode(c) {
			t.Errorf("%s has no row", c)
		}
		if got := cli.ExitCode(cove.Errorf(c, "x")); got != want[c] {
			t.Errorf("%s: exit code %d, want %d", c, got, want[c])
		}
		passed := cli.ExitCode(cli.PlatformError(cove.Errorf(c, "x")))
		if c != cove.Canceled && passed != 125 || c == cove.Canceled && passed != 130 {
			t.Errorf("%s in a command that passes codes on: %d", c, passed)
		}
	}
	for err, want := range map[error]int{nil: 0, errors.New("x"): 70, context.Canceled: 130, context.DeadlineExceeded: 124} {
		if got := cli.ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

func TestComplaints(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{cove.Errorf(cove.Invalid, "bad \x1b[31mred"), "cove: bad \\x1b[31mred\n"},
		{cove.Wrap(cove.Unavailable, errors.New("disk"), "it broke").Remedy("mend it"), "cove: it broke\n  cause: disk\n  mend it\n"},
		{fmt.Errorf("write: %w", os.ErrClosed), "cove: write: file already closed\n"},
		{context.Canceled, "cove: interrupted\n"},
	} {
		var w bytes.Buffer
		cli.Complain(&w, tc.err)
		if diff := cmp.Diff(tc.want, w.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNothingMovesTheCursor(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü 漢":     "plain ü 漢",
		"\x1b[2Jx":      `\x1b[2Jx`,
		"a\r\nb\tc":     `a\x0d\nb\tc`,
		"\u009b31m":     `\u009b31m`,
		"\u202egnp.exe": `\u202egnp.exe`,
		"a\u2028b":      `a\u2028b`,
		"\xff\xfe":      `\xff\xfe`,
		"\x7f\x00":      `\x7f\x00`,
		"\ufffd":        "\ufffd",
	} {
		if got := cli.Escape(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	var w bytes.Buffer
	if err := cli.Table(&w, []string{"A", "B"}, [][]string{{"x\ny", ""}, {"longer", "\x1b]0;t\a"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("A       B\nx\\ny    -\nlonger  \\x1b]0;t\\x07\n", w.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTimesAreCoarse(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 90 * time.Second: "90s", 5 * time.Minute: "5m", 3 * time.Hour: "3h", 50 * time.Hour: "2d",
	} {
		if got := cli.Coarse(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestKeysThatLeave(t *testing.T) {
	const p, q = "\x10", "\x11"
	for _, tc := range []struct {
		pieces []string
		passed string
		left   bool
	}{
		{[]string{"ls\r"}, "ls\r", false},
		{[]string{"a" + p + q + "b"}, "a", true},
		{[]string{p, q}, "", true},
		{[]string{p, "x"}, p + "x", false},
		{[]string{p + p + q}, p, true},
		{[]string{q}, q, false},
	} {
		if passed, left := cli.Typed(tc.pieces...); passed != tc.passed || left != tc.left {
			t.Errorf("%q: passed %q, left %v", tc.pieces, passed, left)
		}
	}
}

func TestJournalsAreMergedByTime(t *testing.T) {
	got, err := cli.Merged([][]int{{1, 4, 9}, {}, {2, 3, 10}, {5}})
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 9, 10}, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if _, err := cli.Merged([][]int{{1, 2}, {3, -1}}); err == nil {
		t.Error("an error is lost")
	}
}

func TestCommandsAreMadeByTheirNames(t *testing.T) {
	for known, own := range cli.CommandNames() {
		if known != own {
			t.Errorf("%s is known as %s", own, known)
		}
	}
}
