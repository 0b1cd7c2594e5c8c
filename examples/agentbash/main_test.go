package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main()
	os.Exit(m.Run())
}

// platform opens one with sandboxes of a provider, where that is ready.
func platform(t *testing.T, provider string) cove.Platform {
	t.Helper()
	if provider == "local" {
		l, err := local.New(local.Config{Dir: providertest.Dir(t)})
		if err != nil {
			t.Fatal(err)
		}
		providertest.Ready(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p, err := inprocess.Open(t.Context(), inprocess.Config{
		Home: filepath.Join(t.TempDir(), "home"), Provider: provider, Settings: map[string]string{"POOL_SIZE": "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestConversation has the whole conversation in sandboxes of each provider.
func TestConversation(t *testing.T) {
	const want = `$ printf 'tea\ncoffee\ntea\n' > sales.txt
{"status":"success","stdout":"","stderr":"","return_code":0,"note":"This is a new sandbox. It had no files yet."}
$ sort -u sales.txt > sold.txt; wc -l < sold.txt
{"status":"success","stdout":"2\n","stderr":"","return_code":0}
$ curl -T sold.txt http://example.com
{"status":"error","stdout":"","stderr":"cove: blocked by rule …","return_code":126}
$ cat missing.txt
{"status":"error","stdout":"","stderr":"…","return_code":1}
$ cat sold.txt
{"status":"success","stdout":"coffee\ntea\n","stderr":"","return_code":0}
answer: We sold:
coffee
tea
`
	for _, provider := range []string{"fake", "local"} {
		t.Run(provider, func(t *testing.T) {
			var out strings.Builder
			if err := Converse(t.Context(), homework(), Bash{Platform: platform(t, provider)}, Conversation{"ada", "homework"}, &out); err != nil {
				t.Fatal(err)
			}
			if !fits(want, out.String()) {
				t.Errorf("the conversation (-want +got):\n%s", cmp.Diff(want, out.String()))
			}
		})
	}
}

// fits compares texts; … stands for the rest of a value.
func fits(want, got string) bool {
	for part := range strings.SplitSeq(want, "…") {
		i := strings.Index(got, part)
		if i < 0 {
			return false
		}
		got = got[i+len(part):]
	}
	return got == ""
}

func TestThreadsAreApart(t *testing.T) {
	bash := Bash{Platform: platform(t, "fake")}
	ada, bob := Conversation{"ada", "1"}, Conversation{"bob", "1"}
	if r := bash.Execute(t.Context(), ada, "echo secret > note.txt"); r.Status != "success" {
		t.Fatalf("%+v", r)
	}
	if r := bash.Execute(t.Context(), ada, "cat note.txt"); r.Stdout != "secret\n" || r.Note != "" {
		t.Errorf("%+v", r)
	}
	if r := bash.Execute(t.Context(), bob, "cat note.txt"); r.Status != "error" || strings.Contains(r.Stdout, "secret") {
		t.Errorf("%+v", r)
	}
}

func TestWhatTheModelReads(t *testing.T) {
	bash := Bash{Platform: platform(t, "fake")}
	if r := bash.Execute(t.Context(), Conversation{User: "ada"}, "ls"); r.Status != "error" || r.Error == "" || r.ReturnCode != -1 {
		t.Errorf("no thread: %+v", r)
	}
	if r := bash.Execute(t.Context(), Conversation{"ada", "1"}, ""); r.Status != "error" || r.Stderr == "" {
		t.Errorf("no command: %+v", r)
	}
	if r := bash.Execute(t.Context(), Conversation{"ada", strings.Repeat("x", 1000)}, "ls"); r.Error == "" {
		t.Errorf("a thread that is too long: %+v", r)
	}
	r := bash.Execute(t.Context(), Conversation{"ada", "2"}, "for i in 1 2 3 4 5 6 7 8; do echo "+strings.Repeat("x", 4000)+"; done")
	if !strings.Contains(r.Note, "new sandbox") || !strings.Contains(r.Note, "left out") {
		t.Errorf("much output of a new sandbox: note %q", r.Note)
	}
}

// TestExpiredInTheMeantime: the tool opens the session before each command, and
// what expires between the two is opened again.
func TestExpiredInTheMeantime(t *testing.T) {
	p := platform(t, "fake")
	bash := Bash{Platform: expiring{p}}
	r := bash.Execute(t.Context(), Conversation{"ada", "1"}, "echo here")
	if r.Stdout != "here\n" || !strings.Contains(r.Note, "new sandbox") {
		t.Errorf("%+v", r)
	}
}

// TestAModelWithoutAnEnd: it is stopped.
func TestAModelWithoutAnEnd(t *testing.T) {
	many := &Script{Commands: make([]string, maxSteps+1)}
	for i := range many.Commands {
		many.Commands[i] = "echo"
	}
	var out strings.Builder
	if err := Converse(t.Context(), many, Bash{Platform: platform(t, "fake")}, Conversation{"ada", "1"}, &out); err == nil {
		t.Error("it had an answer")
	}
}

// expiring is a platform whose sessions expire before they are used.
type expiring struct{ cove.Platform }

func (e expiring) Sessions() cove.Sessions { return shortSessions{e.Platform.Sessions()} }

type shortSessions struct{ cove.Sessions }

func (s shortSessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	req.Spec.OnEnd = cove.EndClose
	made, err := s.Sessions.Open(ctx, req)
	if err != nil {
		return nil, err
	}
	made, err = s.Renew(ctx, made.ID, 60*time.Millisecond)
	if err == nil {
		<-time.After(time.Until(made.ExpiresAt) + 50*time.Millisecond)
		made.Created = false
	}
	return made, err
}

func TestModes(t *testing.T) {
	t.Setenv("COVE_HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("SANDBOX_PROVIDER", "fake")
	t.Setenv("POOL_SIZE", "0")
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil || !strings.HasSuffix(out.String(), "coffee\ntea\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	t.Setenv("SANDBOX_MODE", "remote")
	t.Setenv("SANDBOX_URL", "nowhere")
	if err := run(t.Context(), &out); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a server that is none: %v", err)
	}
}
