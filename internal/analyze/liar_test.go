package analyze_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/analyze"
)

// liar is a place whose python3 does what a script says.
func liar(t *testing.T, script string) *host {
	t.Helper()
	h := newHost(t)
	h.python = filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(h.python, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestAnswersAreNotBelieved: what comes from a sandbox is taken only in the form
// and in the bounds that it must have.
func TestAnswersAreNotBelieved(t *testing.T) {
	const code = "import os # and more"
	read := "read -r n; head -c \"$n\" >/dev/null; "
	for name, script := range map[string]string{
		"no length":           read + "echo hello; cat >/dev/null",
		"a long length":       read + "printf '%0100d' 7; cat >/dev/null",
		"a negative length":   read + "printf -- '-1\\n'; cat >/dev/null",
		"more than there is":  read + "printf '9999999\\n'; cat >/dev/null",
		"no JSON":             read + "printf '5\\nhello'; cat >/dev/null",
		"another kind":        read + "printf '14\\n{\"imports\": 7}'; cat >/dev/null",
		"nothing":             read + "printf '0\\n'; cat >/dev/null",
		"the end":             "exit 3",
		"the end on the way":  read + "printf '100\\n{'; exit 0",
		"an answer too early": "printf '2\\n{}'; exec sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			host := liar(t, script) // before any program is started: a child that is forked meanwhile has the file open for writing
			t.Parallel()
			text := code
			if name == "an answer too early" {
				text = strings.Repeat("#", 1<<20)
			}
			if r, err := analyze.New().Analyze(t.Context(), host, "python", text); cove.CodeOf(err) != cove.Unavailable || cove.RemedyOf(err) == "" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestAnswersAreCut(t *testing.T) {
	long := strings.Repeat("é", 5000)
	answer := `{"imports":[{"module":"` + long + `","how":"` + long + `","line":-5,"column":-1}],"unread":"` + long + `","syntax":{"name":"` + long + `","value":"` + long + `","line":-1}}`
	file := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(file, []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	h := liar(t, "read -r n; head -c \"$n\" >/dev/null; wc -c <"+file+"; cat "+file+"; echo noise; cat >/dev/null")
	r, err := analyze.New().Analyze(t.Context(), h, "python", "x")
	if err != nil {
		t.Fatal(err)
	}
	i := r.Imports[0]
	if len(i.Module) > 260 || len(i.How) > 260 || i.Line != 0 || i.Column != 0 || len(r.Unread) > 260 || len(r.Syntax.Name) > 260 || len(r.Syntax.Value) > 8200 || r.Syntax.Line != 0 {
		t.Errorf("got %d, %d, %+v", len(i.Module), len(r.Unread), i.Line)
	}
}

func TestWhatItSaidIsTold(t *testing.T) {
	_, err := analyze.New().Analyze(t.Context(), liar(t, "echo first >&2; echo 'no library' >&2; exit 1"), "python", "x")
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(err.Error(), "exit code 1): no library") {
		t.Errorf("got %v", err)
	}
}
