package platformtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func contextCases() []testCase {
	return []testCase{
		{"remember", contextsRemember},
		{"values_and_errors", valuesAndErrors},
		{"of_one_run", ofOneRun},
		{"are_apart", contextsAreApart},
		{"restart", contextRestart},
		{"interrupt", contextInterrupt},
		{"timeout", contextTimeout},
		{"death", contextDeath},
		{"close", contextClose},
		{"in_order", contextInOrder},
		{"too_many_wait", contextTooMany},
		{"bad_requests", contextBadRequests},
		{"analyze", contextAnalyze},
	}
}

// coder runs code of the platform's language in one session.
type coder struct {
	*rig
	*Language

	in cove.Contexts
}

func (s *suite) coder(t *testing.T) coder {
	t.Helper()
	r := s.start(t, Options{})
	lang := r.h.Extras().Code
	if lang == nil {
		t.Skip("this platform runs no code in contexts")
	}
	p := r.user("acme")
	return coder{rig: r, Language: lang, in: p.Contexts(r.session(p, cove.Spec{}).ID)}
}

func (c coder) run(code, name string) *cove.CodeResult {
	c.t.Helper()
	got, err := c.in.Run(c.ctx, cove.CodeRequest{Language: c.Name, Code: code, Context: name})
	c.must(err, "run "+code)
	return got
}

// remembers runs code that must print what x was given.
func (c coder) remembers(name string) {
	c.t.Helper()
	if got := c.run(c.Show, name); got.Error != nil || string(got.Stdout.Data) != "42\n" {
		c.t.Errorf("%s printed %q with the error %+v, want 42", c.Show, got.Stdout.Data, got.Error)
	}
}

// forgot runs code that must fail for want of x.
func (c coder) forgot(name string) {
	c.t.Helper()
	if got := c.run(c.Show, name); got.Error == nil && got.ExitCode == 0 {
		c.t.Errorf("x is still known: %q", got.Stdout.Data)
	}
}

func contextsRemember(t *testing.T, s *suite) {
	c := s.coder(t)
	first := c.run(c.Assign, "")
	if first.Error != nil || first.Outcome != cove.Exited || first.Context == "" {
		t.Fatalf("%s gave %+v", c.Assign, first)
	}
	c.remembers("")
	c.remembers(first.Context)
	list := all(c.rig, c.in.List(c.ctx))
	if len(list) != 1 || list[0].Name != first.Context || list[0].Language != c.Name || list[0].Busy || list[0].CreatedAt.IsZero() {
		t.Errorf("the contexts are %+v", list)
	}
	var heard string
	_, err := c.in.Run(c.ctx, cove.CodeRequest{Language: c.Name, Code: c.Show, OnOutput: func(ch cove.Chunk) { heard += string(ch.Data) }})
	c.must(err, "run with a listener")
	same(t, "what a listener heard", heard, "42\n")
}

func valuesAndErrors(t *testing.T, s *suite) {
	c := s.coder(t)
	c.run(c.Assign, "")
	if c.Value != "" {
		got := c.run(c.Value, "")
		if len(got.Results) != 1 || got.Results[0]["text/plain"] != "43" {
			t.Errorf("%s has the values %v", c.Value, got.Results)
		}
	}
	raised := c.run(c.Raise, "")
	if raised.Error == nil || raised.Error.Name != c.Kind || raised.Error.Value != c.Text || raised.ExitCode == 0 {
		t.Errorf("%s gave %+v with the error %+v", c.Raise, raised.Result, raised.Error)
	}
	c.remembers("")
}

// ofOneRun: variables are those of one run, values are told as they are shown, and
// runs are counted.
func ofOneRun(t *testing.T, s *suite) {
	c := s.coder(t)
	if got := c.run(c.Assign, ""); got.Count != 1 || got.Main != 0 {
		t.Errorf("the first run has the number %d and the value %d", got.Count, got.Main)
	}
	var heard string
	var shown []string
	ask := cove.CodeRequest{
		Language: c.Name, Code: c.Word, Env: map[string]string{"WORD": "one two"},
		OnOutput: func(ch cove.Chunk) { heard += string(ch.Data) },
		OnResult: func(v cove.Rich, main bool) { shown = append(shown, fmt.Sprint(v["text/plain"], " ", main)) },
	}
	_, err := c.in.Run(c.ctx, ask)
	c.must(err, "run with a variable")
	same(t, "the variable", heard, "one two\n")
	if got := c.run(c.Word, ""); got.ExitCode == 0 && got.Error == nil {
		t.Errorf("the variable is still there: %q", got.Stdout.Data)
	}
	if c.Value != "" {
		ask.Code, ask.OnOutput = c.Value, nil
		got, err := c.in.Run(c.ctx, ask)
		c.must(err, "run with who looks")
		same(t, "what was shown", strings.Join(shown, ","), "43 true")
		if got.Main != 1 || got.Count != 4 {
			t.Errorf("the fourth run has the number %d and the value %d", got.Count, got.Main)
		}
	}
	ask.Env = map[string]string{"a-b": "x"}
	wantField(t, failure(c.in.Run(c.ctx, ask)), cove.Invalid, "env")
}

func contextsAreApart(t *testing.T, s *suite) {
	c := s.coder(t)
	named, err := c.in.Open(c.ctx, cove.ContextSpec{Name: "mine", Language: c.Name})
	c.must(err, "open a context")
	fresh, err := c.in.Open(c.ctx, cove.ContextSpec{Language: c.Name})
	c.must(err, "open a context without a name")
	if named.Name != "mine" || fresh.Name == "" || fresh.Name == "mine" {
		t.Fatalf("the contexts are named %q and %q", named.Name, fresh.Name)
	}
	c.run(c.Assign, "mine")
	c.remembers("mine")
	c.forgot(fresh.Name)
	c.forgot("")
	_, err = c.in.Open(c.ctx, cove.ContextSpec{Name: "mine", Language: c.Name})
	if err != nil {
		wantCode(t, err, cove.Conflict)
	}
	c.remembers("mine") // opened twice or refused: it is the same context
}

func contextRestart(t *testing.T, s *suite) {
	c := s.coder(t)
	name := c.run(c.Assign, "").Context
	c.must(c.in.Restart(c.ctx, name), "restart")
	c.forgot(name)
	c.run(c.Assign, name)
	c.remembers(name)
}

// contextInterrupt: what is interrupted ends, and the context remembers. An
// interrupt may come before the code has begun, so it is sent until it works.
func contextInterrupt(t *testing.T, s *suite) {
	c := s.coder(t)
	name := c.run(c.Assign, "").Context
	done := async(func() (*cove.CodeResult, error) {
		return c.in.Run(c.ctx, cove.CodeRequest{Context: name, Code: c.Loop})
	})
	c.eventually("a looping context is busy", func() bool {
		list := all(c.rig, c.in.List(c.ctx))
		return len(list) == 1 && list[0].Busy
	})
	var got answer[*cove.CodeResult]
	c.eventually("an interrupt ends the code", func() bool {
		c.must(c.in.Interrupt(c.ctx, name), "interrupt")
		select {
		case got = <-done:
			return true
		default:
			return false
		}
	})
	c.must(got.err, "run code that is interrupted")
	if got.value.Error == nil && got.value.Outcome == cove.Exited && got.value.ExitCode == 0 {
		t.Errorf("interrupted code is told as %+v", got.value)
	}
	c.remembers(name)
}

func contextTimeout(t *testing.T, s *suite) {
	c := s.coder(t)
	got, err := c.in.Run(c.ctx, cove.CodeRequest{Language: c.Name, Code: c.Loop, Limits: cove.Limits{Wall: 200 * time.Millisecond}})
	c.must(err, "run code over its time")
	if got.Outcome != cove.TimedOut || got.ExitCode != -1 {
		t.Errorf("code over its time is told as %+v", got.Result)
	}
	c.run(c.Assign, "")
	c.remembers("")
}

func contextDeath(t *testing.T, s *suite) {
	c := s.coder(t)
	c.run(c.Assign, "")
	if got := c.run(c.Die, ""); got.Error == nil {
		t.Errorf("the death of an interpreter is told as %+v", got)
	}
	c.forgot("")
	c.run(c.Assign, "")
	c.remembers("")
}

func contextClose(t *testing.T, s *suite) {
	c := s.coder(t)
	name := c.run(c.Assign, "").Context
	c.must(c.in.Close(c.ctx, name), "close")
	if list := all(c.rig, c.in.List(c.ctx)); len(list) > 0 {
		t.Errorf("after closing, the contexts are %+v", list)
	}
	wantCode(t, c.in.Close(c.ctx, name), cove.NotFound)
	c.forgot("")
}

// contextInOrder: one context runs one thing at a time, so every caller sees
// the whole of what it ran and nothing of another's.
func contextInOrder(t *testing.T, s *suite) {
	c := s.coder(t)
	c.run(c.Assign, "")
	var answers []<-chan answer[*cove.CodeResult]
	for range 10 {
		answers = append(answers, async(func() (*cove.CodeResult, error) {
			return c.in.Run(c.ctx, cove.CodeRequest{Language: c.Name, Code: c.Show})
		}))
	}
	for _, ch := range answers {
		a := receive(c.rig, ch, "an answer to Run")
		c.must(a.err, "run")
		same(t, "what each caller sees", string(a.value.Stdout.Data), "42\n")
	}
}

// contextTooMany: those who wait for a context are bounded.
func contextTooMany(t *testing.T, s *suite) {
	c := s.coder(t)
	name := c.run(c.Assign, "").Context
	ctx, leave := context.WithCancel(c.ctx)
	ended := make(chan error, 200)
	for range cap(ended) {
		go func() {
			_, err := c.in.Run(ctx, cove.CodeRequest{Context: name, Code: c.Loop})
			ended <- err
		}()
	}
	wantCode(t, receive(c.rig, ended, "the first answer"), cove.Exhausted)
	leave()
	for range cap(ended) - 1 {
		_ = receive(c.rig, ended, "an answer after the callers left")
	}
	c.eventually("the context is free again", func() bool {
		list := all(c.rig, c.in.List(c.ctx))
		return len(list) == 1 && !list[0].Busy
	})
	c.run(c.Assign, name)
	c.remembers(name)
}

func contextBadRequests(t *testing.T, s *suite) {
	c := s.coder(t)
	run := func(req cove.CodeRequest) error { return failure(c.in.Run(c.ctx, req)) }
	wantField(t, run(cove.CodeRequest{Language: "no-such-language", Code: "1"}), cove.Invalid, "language")
	wantField(t, run(cove.CodeRequest{Code: "1"}), cove.Invalid, "language")
	wantField(t, run(cove.CodeRequest{Language: c.Name, Limits: cove.Limits{Wall: -1}}), cove.Invalid, "timeout")
	wantField(t, run(cove.CodeRequest{Language: c.Name, Context: "a\x00b"}), cove.Invalid, "context_id")
	wantCode(t, run(cove.CodeRequest{Context: "none", Code: "1"}), cove.NotFound)
	wantField(t, failure(c.in.Open(c.ctx, cove.ContextSpec{Language: "no-such-language"})), cove.Invalid, "language")
	wantCode(t, c.in.Restart(c.ctx, "none"), cove.NotFound)
	wantCode(t, c.in.Interrupt(c.ctx, "none"), cove.NotFound)
}

// contextAnalyze: code is looked into with and without a session, and nothing of
// it runs.
func contextAnalyze(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	if !r.h.Extras().Looks {
		t.Skip("this platform does not look into code")
	}
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	req := cove.AnalyzeRequest{Language: "py", Code: "import math\nimport os\n"}
	for _, where := range []cove.ID{id, ""} {
		got, err := p.Contexts(where).Analyze(r.ctx, req)
		r.must(err, "analyze")
		if len(got.Security.Imports) != 2 || len(got.Security.Blocked) != 1 || got.Security.Blocked[0].Line != 2 || got.Decision.Effect != cove.Allow || got.Template == "" || got.Provider == "" {
			t.Errorf("for session %q: %+v, %+v", where, got, got.Security)
		}
	}
	req.Imports = cove.ImportsBlock
	got, err := p.Contexts(id).Analyze(r.ctx, req)
	r.must(err, "analyze")
	if d := got.Decision; d.Effect != cove.Deny || d.Layer != cove.Content || d.Refusal == nil || d.Refusal.Word != "os" || d.Refusal.Line != 2 {
		t.Errorf("in mode block: %+v, %+v", d, d.Refusal)
	}
	_, err = p.Contexts("").Analyze(r.ctx, cove.AnalyzeRequest{Language: "cobol", Code: "x"})
	wantCode(t, err, cove.Unsupported)
	_, err = p.Contexts("").Analyze(r.ctx, cove.AnalyzeRequest{Language: "python", Code: "x", Template: "nowhere"})
	wantCode(t, err, cove.Invalid)
	_, err = p.Contexts("").Analyze(r.ctx, cove.AnalyzeRequest{Language: "python", Code: "x", Imports: "soft"})
	wantCode(t, err, cove.Invalid)
}
