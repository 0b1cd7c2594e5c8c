package providertest_test

import (
	"context"
	"io"
	"iter"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestCasesAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range providertest.Cases() {
		group, kase, ok := strings.Cut(name, "/")
		if !ok || group == "" || kase == "" || strings.ToLower(name) != name || strings.ContainsAny(kase, " /") || seen[name] {
			t.Errorf("%q is not a good name, or is used twice", name)
		}
		seen[name] = true
	}
	for _, group := range []string{"lifecycle", "exec", "streams", "limits", "files", "signals", "timeouts", "kill", "background", "terminal", "concurrency", "attach", "isolation", "usage", "leaks"} {
		if !slices.ContainsFunc(providertest.Cases(), func(name string) bool { return strings.HasPrefix(name, group+"/") }) {
			t.Errorf("there are no cases about %s", group)
		}
	}
}

func TestDirIsTheSameForATest(t *testing.T) {
	first := providertest.Dir(t)
	if again := providertest.Dir(t); again != first {
		t.Errorf("a second call gives %s; want %s", again, first)
	}
	t.Run("other", func(t *testing.T) {
		if other := providertest.Dir(t); other == first {
			t.Errorf("another test gets the same directory")
		}
	})
}

// defect is the variable that makes TestDefect run one of the providers below.
const defect = "PROVIDERTEST_DEFECT"

// broken is a fake with something wrong.
type broken struct {
	*fake.Provider

	probe  func(*cove.Capabilities)
	spec   func(*cove.Spec)
	list   func(iter.Seq2[cove.ID, error]) iter.Seq2[cove.ID, error]
	start  func(*cove.Command)
	reader func(name string) (io.ReadCloser, error)
}

func (b *broken) Probe(ctx context.Context) (cove.Capabilities, error) {
	c, err := b.Provider.Probe(ctx)
	if b.probe != nil {
		b.probe(&c)
	}
	return c, err
}

func (b *broken) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	if b.list != nil {
		return b.list(b.Provider.List(ctx))
	}
	return b.Provider.List(ctx)
}

func (b *broken) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if b.spec != nil {
		b.spec(&spec)
	}
	s, err := b.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return &brokenSandbox{s, b}, nil
}

type brokenSandbox struct {
	cove.Sandbox

	b *broken
}

func (s *brokenSandbox) Unwrap() cove.Sandbox { return s.Sandbox }

func (s *brokenSandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if s.b.start != nil {
		s.b.start(&cmd)
	}
	return s.Sandbox.Start(ctx, cmd)
}

func (s *brokenSandbox) Files() cove.Files { return brokenFiles{s.Sandbox.Files(), s.b} }

type brokenFiles struct {
	cove.Files

	b *broken
}

func (f brokenFiles) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if f.b.reader != nil {
		if r, err := f.b.reader(name); err == nil {
			return r, nil
		}
	}
	return f.Files.Read(ctx, name, offset, length)
}

// lossy drops the last byte of everything.
type lossy struct{ to io.Writer }

func (l lossy) Write(b []byte) (int, error) {
	_, err := l.to.Write(b[:len(b)-1])
	return len(b), err
}

// defects are what can be wrong, and a case that must notice.
var defects = map[string]struct {
	make    func(*broken)
	noticed string
}{
	"forgets what it made": {func(b *broken) {
		b.list = func(iter.Seq2[cove.ID, error]) iter.Seq2[cove.ID, error] { return func(func(cove.ID, error) bool) {} }
	}, "lifecycle/create_lists_and_destroys"},
	"downgrades in silence": {func(b *broken) {
		b.spec = func(s *cove.Spec) { s.Require = cove.Require{} }
	}, "spec/boundary_too_strong_is_unsupported"},
	"leaks the host's environment": {func(b *broken) {
		b.start = func(c *cove.Command) {
			c.Env = map[string]string{}
			for _, pair := range os.Environ() {
				if k, v, _ := strings.Cut(pair, "="); k != "PATH" && k != "HOME" {
					c.Env[k] = v
				}
			}
		}
	}, "spec/host_environment_stays_outside"},
	"loses output": {func(b *broken) {
		b.start = func(c *cove.Command) {
			if c.Stdout != nil {
				c.Stdout = lossy{c.Stdout}
			}
		}
	}, "exec/shell_works_as_usual"},
	"ignores the output limit": {func(b *broken) {
		b.start = func(c *cove.Command) {
			if c.Limits.Output > 1 {
				c.Limits.Output--
			}
		}
	}, "streams/output_limit"},
	"reads the host's files": {func(b *broken) {
		b.reader = func(name string) (io.ReadCloser, error) { return os.Open(path.Clean("/" + name)) }
	}, "names/dots_stay_inside"},
	"does not know what it can do": {func(b *broken) {
		b.probe = func(c *cove.Capabilities) { c.Powers = []cove.Power{cove.PowerAttach, "teleport"} }
	}, "powers/capabilities_agree_with_interfaces"},
	"is not ready": {func(b *broken) {
		b.probe = func(c *cove.Capabilities) { c.Ready = false }
	}, "usage/grows"},
}

// TestDefect runs a part of the suite on a provider with a defect, when the
// test below asks for it.
func TestDefect(t *testing.T) {
	d, ok := defects[os.Getenv(defect)]
	if !ok {
		return
	}
	group, _, _ := strings.Cut(d.noticed, "/")
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p, err := fake.New(fake.Config{Dir: providertest.Dir(t)})
		if err != nil {
			t.Fatal(err)
		}
		b := &broken{Provider: p}
		d.make(b)
		return b
	}, group)
}

// again runs a test of this file in a process of its own, where it may fail.
func again(t *testing.T, name string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSuiteNoticesDefects(t *testing.T) {
	for what, d := range defects {
		t.Run(what, func(t *testing.T) {
			out, err := again(t, "TestDefect", defect+"="+what)
			if err == nil || !strings.Contains(out, "--- FAIL: TestDefect/"+d.noticed) {
				t.Errorf("a provider that %s passes %s: %v\n%s", what, d.noticed, err, out)
			}
		})
	}
}

// needy is the variable that makes TestNeedy ask for a provider that is not
// ready.
const needy = "PROVIDERTEST_NEEDY"

func TestNeedy(t *testing.T) {
	if os.Getenv(needy) == "" {
		return
	}
	p, err := fake.New(fake.Config{Dir: t.TempDir(), Name: "shy", Unready: "it is shy"})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	t.Log("it went on")
}

func TestRequire(t *testing.T) {
	for list, word := range map[string]string{"": "--- SKIP", "local,docker": "--- SKIP", "local,shy": "--- FAIL"} {
		out, _ := again(t, "TestNeedy", needy+"=1", "COVE_REQUIRE="+list)
		if !strings.Contains(out, word) || !strings.Contains(out, "it is shy") || strings.Contains(out, "it went on") {
			t.Errorf("with COVE_REQUIRE=%q: want %s in\n%s", list, word, out)
		}
	}
	p, err := fake.New(fake.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p) // goes on
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// groupVariable makes TestGroup run the group that it names.
const groupVariable = "PROVIDERTEST_GROUP"

func TestGroup(t *testing.T) {
	name := os.Getenv(groupVariable)
	if name == "" {
		return
	}
	providertest.Run(t, func(t *testing.T) cove.Provider {
		p, err := fake.New(fake.Config{Dir: providertest.Dir(t)})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}, name)
}

func TestRunChecksGroups(t *testing.T) {
	for _, c := range []struct {
		what, group, pattern string
		fails                bool
		says                 []string
	}{
		{"a group", "background", "TestGroup", false, nil},
		{"an unknown group", "fork", "TestGroup", true, []string{`no group ["fork"]`, "lifecycle, spec, ", "leaks"}},
		{"a group that the provider lacks", "solo", "TestGroup", true, []string{"all were skipped"}},
		{"a pattern that leaves a case", "background", "TestGroup$/^background", false, nil},
		{"a pattern that leaves no group", "background", "TestGroup$/^none", true, []string{"ran no case"}},
		{"a pattern that leaves no case", "background", "TestGroup$/^background$/^none", true, []string{"ran no case"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			out, err := again(t, c.pattern, groupVariable+"="+c.group)
			if (err != nil) != c.fails || !c.fails && !strings.Contains(out, "--- PASS: TestGroup/background/") {
				t.Errorf("%v\n%s", err, out)
			}
			for _, text := range c.says {
				if !strings.Contains(out, text) {
					t.Errorf("want %q in\n%s", text, out)
				}
			}
		})
	}
}
