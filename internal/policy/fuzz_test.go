package policy_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

// FuzzAllowedStartsOnlyListed plays every line that agent-bash lets through in
// an interpreter that starts nothing and touches no file, and watches what the
// line would start: only programs on the list, and with arguments that pass
// when they are judged as what they became.
func FuzzAllowedStartsOnlyListed(f *testing.F) {
	for _, line := range honest {
		f.Add(line)
	}
	for _, e := range evasions {
		f.Add(e.line)
	}
	p := agentBash(f)
	f.Fuzz(func(t *testing.T, line string) {
		if explainLine(t, p, line).Decision.Effect != cove.Allow {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
		if err != nil {
			t.Fatalf("%q is let through and does not parse: %v", line, err)
		}
		s := &stage{}
		s.play(t, file)
		s.mu.Lock() // jobs in the background may still be at it
		started := slices.Clone(s.started)
		s.mu.Unlock()
		for _, argv := range started {
			if problem := offList(t, p, argv); problem != "" {
				t.Errorf("%q\nis let through and starts %q: %s", line, argv, problem)
			}
		}
	})
}

// offList says what is wrong with a program that was started, or "".
func offList(t testing.TB, p *policy.Policy, argv []string) string {
	t.Helper()
	if strings.HasPrefix(argv[0], "python") && (len(argv) == 1 || argv[1] == "-") {
		return "" // its code came from a here-document, which an argv does not show
	}
	e, err := p.Explain("agent-bash", cove.ExecRequest{Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	if e.Decision.Effect == cove.Allow {
		return ""
	}
	return e.Decision.Refusal.Rule + ": " + e.Decision.Refusal.Reason
}

// stage is where a line is played: everything that it can see is made up, and
// as nasty as a file or a name of one can be.
type stage struct {
	mu      sync.Mutex
	started [][]string
	calls   int
}

const (
	maxCalls = 300
	maxVars  = 1 << 20
	nasty    = "-delete -exec a[$(rm)] 5\n--compress-program=rm\n-e1erm\n7\n"
)

var (
	errEnough = errors.New("the line has been watched long enough")
	names     = fstest.MapFS{
		"-delete": {}, "--compress-program=rm": {}, "-e1erm.txt": {}, "a.txt": {}, "b.csv": {}, "data.json": {}, "rm": {},
	}
)

func (s *stage) play(t testing.TB, file *syntax.File) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r, err := interp.New(
		interp.Env(expand.ListEnviron("PATH=/bin", "HOME=/home/x", "PWD=/", "USER=x")),
		interp.Dir("/"),
		interp.StdIO(nil, io.Discard, io.Discard),
		interp.CallHandler(s.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
		interp.OpenHandler(func(context.Context, string, int, os.FileMode) (io.ReadWriteCloser, error) { return newPaper(), nil }),
		interp.ReadDirHandler2(func(context.Context, string) ([]fs.DirEntry, error) { return names.ReadDir(".") }),
		interp.StatHandler(func(context.Context, string, bool) (fs.FileInfo, error) { return names.Stat(".") }),
		interp.AccessHandler(func(context.Context, string, interp.AccessMode) error { return nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	file.Stmts = append(file.Stmts, flatten(file)...)
	defer func() {
		if reason := recover(); reason != nil {
			t.Logf("the interpreter gave up: %v", reason)
		}
	}()
	_ = r.Run(ctx, file) // how it ends says nothing
}

// flatten puts a name in place of each process substitution, for which the
// interpreter would make a pipe in the file system, and returns what they run.
func flatten(file *syntax.File) []*syntax.Stmt {
	var stmts []*syntax.Stmt
	syntax.Walk(file, func(n syntax.Node) bool {
		if w, is := n.(*syntax.Word); is {
			for i, part := range w.Parts {
				if ps, is := part.(*syntax.ProcSubst); is {
					stmts = append(stmts, ps.Stmts...)
					w.Parts[i] = &syntax.Lit{Value: "/dev/fd/63"}
				}
			}
		}
		return true
	})
	for _, st := range slices.Clone(stmts) {
		stmts = append(stmts, flatten(&syntax.File{Stmts: []*syntax.Stmt{st}})...)
	}
	return stmts
}

func (s *stage) call(ctx context.Context, args []string) ([]string, error) {
	s.mu.Lock()
	s.calls++
	enough := s.calls > maxCalls
	s.mu.Unlock()
	size := 0
	for _, v := range interp.HandlerCtx(ctx).Env.Each {
		size += len(v.Str)
	}
	if enough || size > maxVars {
		return nil, errEnough
	}
	return args, nil
}

func (s *stage) exec(ctx context.Context, args []string) error {
	s.mu.Lock()
	s.started = append(s.started, slices.Clone(args))
	s.mu.Unlock()
	// What programs print is as unknown as what is in files, but for those that
	// are known to count.
	text := nasty
	if slices.Contains([]string{"wc", "date", "tr", "grep"}, args[0]) {
		text = "5\n"
	}
	_, err := io.WriteString(interp.HandlerCtx(ctx).Stdout, text)
	return err
}

// paper is a file that says something nasty and forgets what is written to it.
type paper struct{ io.Reader }

func newPaper() *paper { return &paper{strings.NewReader(nasty)} }

func (*paper) Write(p []byte) (int, error) { return len(p), nil }
func (*paper) Close() error                { return nil }
