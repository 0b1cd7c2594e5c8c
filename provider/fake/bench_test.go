package fake_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func benchSandbox(b *testing.B) cove.Sandbox {
	b.Helper()
	p, err := fake.New(fake.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close() })
	s, err := p.Create(b.Context(), cove.NewID(), cove.Spec{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func benchRun(b *testing.B, argv ...string) {
	s := benchSandbox(b)
	for b.Loop() {
		p, err := s.Start(b.Context(), cove.Command{Argv: argv})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrue(b *testing.B)  { benchRun(b, "true") }
func BenchmarkEcho(b *testing.B)  { benchRun(b, "echo", "x") }
func BenchmarkShell(b *testing.B) { benchRun(b, "sh", "-c", "echo x") }

func BenchmarkCreateDestroy(b *testing.B) {
	p, err := fake.New(fake.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close() })
	for b.Loop() {
		s, err := p.Create(b.Context(), cove.NewID(), cove.Spec{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Destroy(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
