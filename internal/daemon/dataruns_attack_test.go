package daemon_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest/dataruns"
)

// burglar is what answers questions, with a burglar in every place that it gets: a
// program runs there as policy would never let it.
type burglar struct {
	cove.Runner

	mu     sync.Mutex
	script string            // guarded by mu
	said   map[string]string // guarded by mu; by tenant
}

// Run implements [cove.Runner].
func (b *burglar) Run(ctx context.Context, host cove.RunHost, q cove.RunQuestion) (*cove.RunAnswer, *cove.RunDecision, error) {
	return b.Runner.Run(ctx, burgled{host, b, q.Tenant}, q)
}

type burgled struct {
	cove.RunHost

	b      *burglar
	tenant string
}

// Place implements [cove.RunHost].
func (h burgled) Place(ctx context.Context, want cove.RunPlace) (cove.RunSandbox, func(broken bool), error) {
	place, done, err := h.RunHost.Place(ctx, want)
	if err != nil {
		return place, done, err
	}
	h.b.mu.Lock()
	script := h.b.script
	h.b.mu.Unlock()
	var out bytes.Buffer
	p, err := place.Start(ctx, cove.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		done(true)
		return place, nil, err
	}
	if _, err := p.Wait(ctx); err != nil {
		done(true)
		return place, nil, err
	}
	h.b.mu.Lock()
	h.b.said[h.tenant] = out.String()
	h.b.mu.Unlock()
	return place, done, nil
}

// attack is something that a burglar tries, and the words of what stops it.
type attack struct {
	name, line string
	stopped    []string // one of them is said
}

func attacks() []attack {
	denied := []string{"Read-only file system", "Permission denied", "Operation not permitted"}
	return []attack{
		{"write beside the data", "echo x > /data/shop/planted.csv", denied},
		{"write into the data", "echo 9,x,x,1,2024-01-01 >> /data/shop/orders.csv", denied},
		{"remove the data", "rm -f /data/shop/orders.csv", denied},
		{"make the data writable", "mount -o remount,rw /data/shop 2>&1; echo x > /data/shop/planted.csv", denied},
		{"replace the helper", "cp /bin/true /opt/cove/cove-duckdb", append(denied, "Text file busy")},
		{"write into the helper", "echo x >> /opt/cove/cove-duckdb", append(denied, "Text file busy")},
		{"move the helper away", "mv /opt/cove/cove-duckdb /opt/cove/old", denied},
		{"read another dataset", "cat /data/vault/secrets.csv /data/shop/../vault/secrets.csv", []string{"No such file or directory"}},
		{"read it where the host has it", "cat $HOST/vault/secrets.csv", []string{"No such file or directory", "Permission denied"}},
		{"read the platform's own", "cat $HOST/../home/journal/* $HOST/../home/*.db", []string{"No such file or directory", "Permission denied"}},
	}
}

// TestBurglars runs attacks in the places where questions are answered, with the data
// and the helper in them.
func TestBurglars(t *testing.T) {
	daemontest.NeedDuckDB(t)
	for name, provider := range dataProviders() {
		t.Run(name, func(t *testing.T) {
			d := provider(t)
			d.Provider = name
			data := t.TempDir()
			for file, text := range map[string]string{"shop/orders.csv": "id\n1\n2\n", "vault/secrets.csv": "word\nhush\n"} {
				plant(t, filepath.Join(data, file), text)
			}
			b := &burglar{said: map[string]string{}}
			d.Parts.WrapRunner = func(r cove.Runner) cove.Runner { b.Runner = r; return b }
			h := d.Open(t, dataruns.Setup{Datasets: data})
			defer h.Close()
			for _, a := range attacks() {
				t.Run(a.name, func(t *testing.T) { b.try(t, h, a, data) })
			}
			t.Run("another tenant's", func(t *testing.T) { b.peep(t, h) })
		})
	}
}

func plant(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func asked(t *testing.T, h dataruns.Harness, tenant string) {
	t.Helper()
	p := h.As(cove.Principal{Name: "analyst", Tenant: tenant, Scopes: []cove.Scope{cove.ScopeRuns}})
	run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, Dataset: "shop", SQL: "SELECT count(*) AS n FROM orders"})
	if err == nil {
		run, err = p.Runs().Wait(t.Context(), run.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if run.Answer.Error != nil || len(run.Answer.Rows) != 1 || string(run.Answer.Rows[0]) != "[2]" {
		t.Errorf("after the attack the answer is %+v", run.Answer)
	}
}

func (b *burglar) try(t *testing.T, h dataruns.Harness, a attack, data string) {
	b.set("HOST=" + data + "; " + a.line + " && echo THROUGH")
	asked(t, h, "acme")
	said := b.heard("acme")
	if strings.Contains(said, "THROUGH") || strings.Contains(said, "hush") {
		t.Errorf("it got through: %s", said)
	}
	for _, w := range a.stopped {
		if strings.Contains(said, w) {
			return
		}
	}
	t.Errorf("what stopped it is %q, want one of %q", said, a.stopped)
}

// peep leaves something of one tenant wherever it can be left, and looks for it as
// another.
func (b *burglar) peep(t *testing.T, h dataruns.Harness) {
	const mark = "mark-of-acme"
	b.set("for d in /workspace /tmp /var/tmp /dev/shm /run; do echo " + mark + " > $d/" + mark + " 2>/dev/null; done; echo done")
	asked(t, h, "acme")
	if said := b.heard("acme"); !strings.Contains(said, "done") {
		t.Fatalf("nothing was left: %s", said)
	}
	b.set("ls -a /workspace /tmp /var/tmp /dev/shm /run 2>/dev/null; grep -l -a " + mark + " /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; echo done")
	asked(t, h, "rival")
	if said := b.heard("rival"); strings.Contains(said, mark) || !strings.Contains(said, "done") {
		t.Errorf("another tenant finds %s", said)
	}
}

func (b *burglar) set(script string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script = script
}

func (b *burglar) heard(tenant string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said[tenant]
}

// past is code that policy lets run although it reaches every builtin: a list has two
// names, so that no check sees what is put into it, and the frame in which pandas looks for
// a name is counted by trial.
const past = `names = []
same = names
same.append(pd.Series(["ev", "al"]).sum())
said = []
for what in ["os.getpid()", "os.fork()", "os.listdir('/etc')", "os.open('/etc/passwd', 0)", "os.mkdir('/workspace/planted')"]:
    for depth in range(12):
        try:
            said.append(repr(orders.apply(names[0], expr="@pd.io.common." + what, level=depth)))
        except Exception as e:
            said.append(what + ": " + repr(e))
result_rows = [[text] for text in said if "not defined" not in text and "deep enough" not in text]`

// TestCodeAttacksPastPolicy: code that policy should have refused is held by the kernel.
func TestCodeAttacksPastPolicy(t *testing.T) {
	daemontest.NeedDuckDB(t)
	for name, provider := range dataProviders() {
		t.Run(name, func(t *testing.T) {
			if name != "local" {
				tier.Full(t, "local holds the same code")
			}
			d := provider(t)
			d.Provider = name
			data := t.TempDir()
			plant(t, filepath.Join(data, "shop/orders.csv"), "id\n1\n2\n")
			h := d.Open(t, dataruns.Setup{Datasets: data})
			defer h.Close()
			p := h.As(cove.Principal{Name: "analyst", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRuns}})
			run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QueryPython, Dataset: "shop", Python: past, MaxRows: 1000, Timeout: cove.MaxRunTimeout})
			if err == nil {
				run, err = p.Runs().Wait(t.Context(), run.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			held(t, run)
		})
	}
}

// held wants what the code said to be what the kernel answered.
func held(t *testing.T, run *cove.Run) {
	t.Helper()
	said := map[string]bool{}
	for _, row := range run.Answer.Rows {
		said[string(row)] = true
	}
	want := map[string]string{
		"os.getpid()":                    `AttributeError(\"'int' object has no attribute '__finalize__'\")`, // it was called
		"os.fork()":                      `PermissionError(1, 'Operation not permitted')`,
		"os.listdir('/etc')":             `PermissionError(13, 'Permission denied')`,
		"os.open('/etc/passwd', 0)":      `PermissionError(13, 'Permission denied')`,
		"os.mkdir('/workspace/planted')": `PermissionError(13, 'Permission denied')`,
	}
	for what, answer := range want {
		if strings.Contains(answer, "13") && run.Answer.Confined == cove.Soft {
			continue // there is no landlock
		}
		if !said[`["`+what+": "+answer+`"]`] {
			t.Errorf("%s: %s was not to be heard among %s; %+v", what, answer, run.Answer.Rows, run.Answer.Error)
		}
	}
}
