// Command ladder is one program on every rung of the isolation ladder: the setting
// SANDBOX_PROVIDER says what stands between its sandboxes and the host, and nothing
// else changes. It must not know which one it has.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
)

func main() {
	inprocess.Main()
	if err := run(context.Background(), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "ladder:", cove.MessageOf(err))
		if remedy := cove.RemedyOf(err); remedy != "" {
			_, _ = fmt.Fprintln(os.Stderr, "  "+remedy)
		}
		os.Exit(1)
	}
}

// run opens the platform with the settings of this process, and climbs.
func run(ctx context.Context, out io.Writer) error {
	p, err := inprocess.Open(ctx, inprocess.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	return climb(ctx, p, out)
}

// climb uses a sandbox: files in and out, programs, and code that remembers.
func climb(ctx context.Context, p cove.Platform, out io.Writer) error {
	s, err := p.Sessions().Open(ctx, cove.OpenRequest{})
	if err != nil {
		return err
	}
	defer func() { _, _ = p.Sessions().Close(ctx, s.ID, false) }()
	who := "served by " + s.Provider
	if s.Instead != "" {
		who += " instead of " + s.Instead
	}
	_, _ = fmt.Fprintf(out, "%s, behind %s\n", who, s.Isolation.Boundary)

	if err := p.Files(s.ID).Write(ctx, "in/numbers.txt", strings.NewReader("3\n1\n2\n"), 0o600); err != nil {
		return err
	}
	x, err := p.Processes(s.ID).Exec(ctx, cove.ExecRequest{Line: "sort in/numbers.txt > sorted.txt && wc -l < sorted.txt"})
	if err == nil {
		err = x.Err()
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s lines were sorted\n", strings.TrimSpace(string(x.Stdout.Data)))
	f, err := p.Files(s.ID).Read(ctx, "sorted.txt", 0, 0)
	if err != nil {
		return err
	}
	sorted, err := io.ReadAll(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "they are %s\n", strings.Join(strings.Fields(string(sorted)), " "))
	return remember(ctx, p, s.ID, out)
}

// remember runs code twice: what the first piece made, the second one has.
func remember(ctx context.Context, p cove.Platform, id cove.ID, out io.Writer) error {
	for _, code := range []string{"x = sum(int(n) for n in open('sorted.txt'))", "print('and', x, 'in all')"} {
		r, err := p.Contexts(id).Run(ctx, cove.CodeRequest{Language: "python", Code: code})
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			return err
		}
		_, _ = out.Write(r.Stdout.Data)
	}
	return nil
}
