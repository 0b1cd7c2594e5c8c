// Command twomodes is one program in two modes: with sandboxes of its own, in
// process, or with those of a server, over HTTP. One line of it says which; all
// others are the same, and so is what it prints. It must not know in which mode it
// is.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
)

func main() {
	inprocess.Main()
	if err := run(context.Background(), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	p, err := local(ctx) // or remote(ctx): the one line
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	return tour(ctx, p, &printer{out: out})
}

// tour does a little of everything.
func tour(ctx context.Context, p cove.Platform, say *printer) error {
	ask := cove.OpenRequest{Spec: cove.Spec{User: "ada", Thread: "tour", Policy: "agent-bash", Env: map[string]string{"NAME": "ada"}}}
	s, err := p.Sessions().Open(ctx, ask)
	if err != nil {
		return err
	}
	again, err := p.Sessions().Open(ctx, ask)
	if err != nil {
		return err
	}
	say.line("the same user and thread: the same session %v, created again %v", again.ID == s.ID, again.Created)

	files, procs := p.Files(s.ID), p.Processes(s.ID)
	if err := files.Write(ctx, "in/numbers.txt", strings.NewReader("3\n1\n2\n"), 0o600); err != nil {
		return err
	}
	for _, line := range []string{
		`sort in/numbers.txt > sorted.txt; echo "$NAME sorted"`,
		`cat sorted.txt | tr '\n' ' '`,
		`cat nothing-there 2> /dev/null || exit 4`,
		`cat sorted.txt; rm sorted.txt`,
	} {
		x, err := procs.Exec(ctx, cove.ExecRequest{Line: line})
		if err != nil {
			return err
		}
		say.line("%s: exit code %d, output %q", x.Outcome, x.ExitCode, x.Stdout.Data)
		if x.Refusal != nil {
			say.line("refused at line %d, column %d by %s", x.Refusal.Line, x.Refusal.Column, x.Refusal.Rule)
		}
	}
	if err := background(ctx, procs, say); err != nil {
		return err
	}
	for f, err := range files.List(ctx, ".", 2) {
		if err != nil {
			return err
		}
		say.line("%s %s", f.Mode, f.Path)
	}
	if _, err := files.Read(ctx, "nothing-there", 0, 0); err != nil {
		say.line("a file that is not there: %s", cove.CodeOf(err))
	}
	if err := expiry(ctx, p, say); err != nil {
		return err
	}
	if _, err := p.Sessions().Close(ctx, s.ID, false); err != nil {
		return err
	}
	_, err = procs.Exec(ctx, cove.ExecRequest{Line: "echo"})
	say.line("after the end: %s, %s", cove.CodeOf(err), cove.ReasonOf(err))
	return nil
}

// background follows a program that runs beside others.
func background(ctx context.Context, procs cove.Processes, say *printer) error {
	info, err := procs.Start(ctx, cove.ExecRequest{Line: "sort", KeepStdin: true})
	if err != nil {
		return err
	}
	if err := procs.Input(ctx, info.PID, []byte("pear\napple\n"), true); err != nil {
		return err
	}
	for chunk, err := range procs.Connect(ctx, info.PID, 0) {
		if err != nil {
			return err
		}
		say.part("%s", chunk.Data)
	}
	x, err := procs.Wait(ctx, info.PID)
	if err != nil {
		return err
	}
	say.line("the background program %d has %s", info.PID, x.Outcome)
	return nil
}

// expiry lets a session expire, which ends nothing but its files.
func expiry(ctx context.Context, p cove.Platform, say *printer) error {
	s, err := p.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{OnEnd: cove.EndClose}})
	if err != nil {
		return err
	}
	if s, err = p.Sessions().Renew(ctx, s.ID, 60*time.Millisecond); err != nil { // instead of 30 minutes
		return err
	}
	select {
	case <-time.After(time.Until(s.ExpiresAt) + 100*time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	for range 2 {
		x, err := p.Processes(s.ID).Exec(ctx, cove.ExecRequest{Argv: []string{"echo", "here"}})
		if err != nil {
			return err
		}
		say.line("%s: in another session %v, recreated %v", strings.TrimSpace(string(x.Stdout.Data)), x.Session != s.ID, x.Recreated)
	}
	_, err = p.Sessions().Close(ctx, s.ID, false)
	return err
}

// printer writes what the program has to say.
type printer struct{ out io.Writer }

func (p *printer) line(format string, args ...any) { p.part(format+"\n", args...) }

func (p *printer) part(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...) // there is nobody to tell that nobody listens
}
