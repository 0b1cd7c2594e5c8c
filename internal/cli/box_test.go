package cli_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/provider/local"
)

func TestMain(m *testing.M) {
	local.Main()
	// A command that starts a server starts this very program, which must not
	// run the tests again. It plays a server that cannot start.
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		_, _ = os.Stderr.WriteString("cove: no server in a test\n  run it yourself\n")
		os.Exit(9)
	}
	// A client of MCP starts this program, too, and talks to it.
	if len(os.Args) > 1 && os.Args[1] == "mcp" {
		os.Exit(cli.Main())
	}
	goleak.VerifyTestMain(m)
}

// box is a machine with a COVE_HOME and the fake provider, on which commands
// run in this process.
type box struct {
	t     *testing.T
	home  string
	env   map[string]string
	stdin io.Reader
	ready daemon.Ready // of the server, if there is one
}

func newBox(t *testing.T) *box {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	return &box{t: t, home: home, env: map[string]string{
		"COVE_HOME": home, "SANDBOX_PROVIDER": "fake", "POOL_SIZE": "0", "COVE_ADDR": "127.0.0.1:0",
	}}
}

// served returns a box whose COVE_HOME is served.
func served(t *testing.T) *box {
	t.Helper()
	b := newBox(t)
	b.serve(daemon.Options{Version: "dev"})
	return b
}

func (b *box) lookup(name string) (string, bool) {
	v, ok := b.env[name]
	return v, ok
}

// serve runs a server until the end of the test.
func (b *box) serve(o daemon.Options) {
	b.t.Helper()
	cfg, err := config.Load(config.Sources{Env: b.lookup})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan daemon.Ready, 1), make(chan error, 1)
	o.Logger = slog.New(slog.DiscardHandler)
	o.Ready = func(r daemon.Ready) { ready <- r }
	go func() { ended <- daemon.Serve(ctx, cfg, o) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("server: %v", err)
		}
	})
	select {
	case b.ready = <-ready:
	case err := <-ended:
		ended <- nil
		b.t.Fatalf("server: %v", err)
	}
}

// said is how a command ended.
type said struct {
	code     int
	out, err string
}

// with returns a box with more variables.
func (b *box) with(pairs ...string) *box {
	c := *b
	c.env = maps.Clone(b.env)
	for i := 0; i < len(pairs); i += 2 {
		c.env[pairs[i]] = pairs[i+1]
	}
	return &c
}

// input returns a box with standard input.
func (b *box) input(text string) *box {
	c := *b
	c.stdin = strings.NewReader(text)
	return &c
}

func (b *box) run(args ...string) said {
	b.t.Helper()
	return b.runContext(b.t.Context(), args...)
}

func (b *box) runContext(ctx context.Context, args ...string) said {
	b.t.Helper()
	var out, errs bytes.Buffer
	in := b.stdin
	if in == nil {
		in = strings.NewReader("")
	}
	code := cli.Run(ctx, cli.System{Args: args, Stdin: in, Stdout: &out, Stderr: &errs, Env: b.lookup})
	return said{code, out.String(), errs.String()}
}

// ok runs a command that must succeed and say nothing beside its answer.
func (b *box) ok(args ...string) string {
	b.t.Helper()
	s := b.run(args...)
	if s.code != 0 || s.err != "" {
		b.t.Fatalf("cove %s: code %d\n%s%s", strings.Join(args, " "), s.code, s.out, s.err)
	}
	return s.out
}

// fails runs a command that must end with a code and say some words.
func (b *box) fails(code int, words string, args ...string) said {
	b.t.Helper()
	s := b.run(args...)
	if s.code != code || !strings.Contains(s.err, words) {
		b.t.Errorf("cove %s: code %d, want %d with %q\n%s%s", strings.Join(args, " "), s.code, code, words, s.out, s.err)
	}
	return s
}

// id runs a command that prints an id.
func (b *box) id(args ...string) string {
	b.t.Helper()
	return strings.TrimSpace(b.ok(args...))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
