package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/policy"
	"github.com/cove-sandbox/cove/internal/recovery"
	"github.com/cove-sandbox/cove/internal/volume"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/store/sqlite"
)

// crashDir tells the test binary to be the server that is killed.
const crashDir = "COVE_TEST_CRASH_DIR"

// server is a whole engine on a folder: SQLite, the journal and the fake
// provider, as the daemon has them.
type server struct {
	engine   *engine.Engine
	store    *recovery.Copies
	journal  *audit.Journal
	provider *fake.Provider
	folders  *volume.Dir
}

// openServer opens a server that a stopper may watch.
func openServer(ctx context.Context, dir string, watch ...*stopper) (*server, error) {
	s := &server{}
	pretend := fake.Config{Dir: filepath.Join(dir, "fake")}
	for _, w := range watch {
		pretend.Hook = w.hook
	}
	var err error
	for _, name := range []string{"fake", "output"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	database := filepath.Join(dir, "cove.db")
	s.store, err = recovery.Open(ctx, filepath.Join(dir, "records"), func() (bool, error) { return sqlite.Empty(database) },
		func(ctx context.Context) (cove.Store, error) { return sqlite.Open(ctx, database) }, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if s.journal, err = audit.Open(audit.Config{Dir: filepath.Join(dir, "journal"), Node: "crash"}); err != nil {
		return nil, err
	}
	if s.provider, err = fake.New(pretend); err != nil {
		return nil, err
	}
	archives, err := archive.Open(filepath.Join(dir, "archives"))
	if err != nil {
		return nil, err
	}
	output, err := os.OpenRoot(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	if s.folders, err = volume.Open(filepath.Join(dir, "volumes")); err != nil {
		return nil, err
	}
	rules, err := policy.New(policy.Config{})
	if err != nil {
		return nil, err
	}
	cfg := engine.Config{
		Providers: []cove.Provider{s.provider}, Provider: "fake", Policy: rules,
		Store: s.store, Journal: s.journal, Archives: archives, Folders: s.folders, Output: output, Node: "crash",
	}
	if err := nothingLost(ctx, s.store, cfg); err != nil {
		return nil, err
	}
	for _, w := range watch {
		w.watch(&cfg)
	}
	s.engine, err = engine.Open(ctx, cfg)
	return s, err
}

// nothingLost demands that the database knows all that is there, as it does after
// every crash.
func nothingLost(ctx context.Context, store *recovery.Copies, cfg engine.Config) error {
	site := recovery.Site{
		Copies: store, Archives: cfg.Archives, Folders: cfg.Folders, Providers: cfg.Providers, Chosen: []string{cfg.Provider}, Journal: cfg.Journal,
		Spec: cfg.SpecFor, Logger: slog.New(slog.DiscardHandler),
	}
	items, err := site.Look(ctx)
	if err == nil && len(items) > 0 {
		err = fmt.Errorf("after a crash the database does not know %+v", items)
	}
	return err
}

func (s *server) close(t *testing.T) {
	t.Helper()
	for _, err := range []error{s.engine.Close(context.Background()), s.provider.Close(), s.journal.Close(), s.store.Close(), s.folders.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

// crashChild opens and closes sessions, many at once, until it is killed. It
// writes a line for every call that it got an answer to.
func crashChild(dir string) {
	s, err := openServer(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p := s.engine.As(cove.Principal{Name: "child", Scopes: []cove.Scope{cove.ScopeAll}})
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			for {
				churn(p)
			}
		})
	}
	wg.Wait()
}

func churn(p cove.Platform) {
	ctx := context.Background()
	s, err := p.Sessions().Open(ctx, cove.OpenRequest{})
	if err != nil {
		say("error", err.Error())
		return
	}
	say("open", string(s.ID))
	if rand.IntN(4) == 0 {
		return
	}
	say("closing", string(s.ID))
	if _, err := p.Sessions().Close(ctx, s.ID, false); err != nil {
		say("error", err.Error())
		return
	}
	say("closed", string(s.ID))
}

// say writes one line in one call, so that lines of many goroutines stay whole.
func say(word, text string) { _, _ = os.Stdout.WriteString(word + " " + text + "\n") }

// TestKillInTheMiddleOfAThousandOpensAndCloses kills a server with SIGKILL
// while a thousand callers open and close sessions, starts another on the same
// folder, and demands that the table, the journal and the provider agree, with
// each other and with what the callers were told.
func TestKillInTheMiddleOfAThousandOpensAndCloses(t *testing.T) {
	dir, answers := t.TempDir(), 3000
	if testing.Short() {
		answers = 500
	}
	told := runUntilKilled(t, dir, answers)
	for _, e := range told["error"] {
		t.Errorf("before it was killed the server answered: %s", e)
	}
	s, err := openServer(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close(t)

	table := tableOf(t, s)
	if held := heldBy(t, s.provider); !slices.Equal(table, held) {
		t.Errorf("the table has %d sessions and the provider %d sandboxes: they must be the same", len(table), len(held))
	}
	if kept := recovered(t, s.journal); !slices.Equal(table, kept) {
		t.Errorf("the table has %d sessions and the journal says that %d go on: they must be the same", len(table), len(kept))
	}
	for _, id := range told["closed"] {
		if slices.Contains(table, id) {
			t.Errorf("session %s was closed and is there again", id)
		}
	}
	for _, id := range told["open"] {
		if !slices.Contains(told["closing"], id) && !slices.Contains(table, id) {
			t.Errorf("session %s was opened, nobody closed it, and it is gone", id)
		}
	}
	report, err := audit.Verify(t.Context(), filepath.Join(dir, "journal"))
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("the journal does not verify: %v %+v", err, report.Problems)
	}
	useAll(t, s, table)
}

// runUntilKilled starts the child, kills it after so many answers, and returns
// what it said.
func runUntilKilled(t *testing.T, dir string, answers int) map[string][]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == answers {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		word, text, _ := strings.Cut(lines.Text(), " ")
		told[word] = append(told[word], text)
	}
	_ = cmd.Wait() // it was killed
	if len(told["open"]) < answers/4 {
		t.Fatalf("the child opened only %d sessions", len(told["open"]))
	}
	return told
}

func tableOf(t *testing.T, s *server) []string {
	t.Helper()
	var ids []string
	for rec, err := range s.engine.As(boss).Sessions().List(t.Context(), cove.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(rec.ID))
	}
	slices.Sort(ids)
	return ids
}

func heldBy(t *testing.T, p cove.Provider) []string {
	t.Helper()
	var ids []string
	for id, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return ids
}

// recovered returns the sessions that the journal says were taken up again.
func recovered(t *testing.T, j cove.Journal) []string {
	t.Helper()
	var ids []string
	for e, err := range j.Events(t.Context(), cove.EventFilter{Kind: "session.recovered"}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(e.Session))
	}
	slices.Sort(ids)
	return ids
}

// useAll runs a program in every session that was taken up, and closes it.
func useAll(t *testing.T, s *server, ids []string) {
	t.Helper()
	p := s.engine.As(boss)
	for _, id := range ids {
		if x, err := p.Processes(cove.ID(id)).Exec(t.Context(), cove.ExecRequest{Argv: []string{"true"}}); err != nil || x.ExitCode != 0 {
			t.Fatalf("session %s does not work after the restart: %v", id, err)
		}
		if _, err := p.Sessions().Close(t.Context(), cove.ID(id), false); err != nil {
			t.Fatal(err)
		}
	}
	if held := heldBy(t, s.provider); len(held) != 0 {
		t.Errorf("%d sandboxes are left when all sessions are closed", len(held))
	}
}
