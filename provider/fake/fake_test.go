package fake_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a provider that is closed with the test.
func open(t *testing.T, cfg fake.Config) *fake.Provider {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	p, err := fake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// sandbox returns a fresh sandbox of a fresh provider.
func sandbox(t *testing.T, spec cove.Spec) cove.Sandbox {
	t.Helper()
	s, err := open(t, fake.Config{}).Create(t.Context(), cove.NewID(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ran is how a program ended and what it wrote.
type ran struct {
	cove.Result
	stdout, stderr string
}

// run runs a command to its end.
func run(t *testing.T, s cove.Sandbox, cmd cove.Command) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatalf("start %.200q: %v", cmd.Argv, err)
	}
	r, err := p.Wait(t.Context())
	if err != nil {
		t.Fatalf("wait for %.200q: %v", cmd.Argv, err)
	}
	return ran{r, stdout.String(), stderr.String()}
}

// sh runs a line.
func sh(t *testing.T, s cove.Sandbox, line string) ran {
	t.Helper()
	return run(t, s, cove.Command{Argv: []string{"sh", "-c", line}})
}

func write(t *testing.T, s cove.Sandbox, name, text string) {
	t.Helper()
	if err := s.Files().Write(t.Context(), name, strings.NewReader(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(ctx context.Context, s cove.Sandbox, name string) (string, error) {
	r, err := s.Files().Read(ctx, name, 0, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	return string(b), err
}
