package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Step is one thing that was tried.
type Step struct {
	Name string
	Err  error // nil: it works
}

// String is a line for a person: what was tried, how it went, what to do.
func (s Step) String() string {
	if s.Err == nil {
		return "ok    " + s.Name
	}
	line := fmt.Sprintf("FAIL  %s: %s (%s)", s.Name, cove.MessageOf(s.Err), cove.CodeOf(s.Err))
	if remedy := cove.RemedyOf(s.Err); remedy != "" {
		line += "; " + remedy
	}
	return line
}

// Check tries what a server is for, up to the first thing that does not work. The
// sandbox that it makes is always ended.
func Check(ctx context.Context, p cove.Platform) (steps []Step) {
	var id cove.ID
	try := func(name string, do func() error) bool {
		err := do()
		steps = append(steps, Step{Name: name, Err: err})
		return err == nil
	}
	if !try("the server answers", func() error {
		_, err := p.Admin().Stats(ctx)
		return err
	}) {
		return steps
	}
	if !try("a sandbox is made", func() error {
		s, err := p.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Project: "health", Lifetime: 5 * time.Minute, OnEnd: cove.EndClose}})
		if err == nil {
			id = s.ID
		}
		return err
	}) {
		return steps
	}
	_ = try("a program runs", func() error { return runs(ctx, p.Processes(id)) }) &&
		try("a file is kept", func() error { return keeps(ctx, p.Files(id)) })
	try("the sandbox ends", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, err := p.Sessions().Close(ctx, id, false)
		return err
	})
	return steps
}

func runs(ctx context.Context, p cove.Processes) error {
	x, err := p.Exec(ctx, cove.ExecRequest{Argv: []string{"echo", "alive"}})
	if err == nil && (x.ExitCode != 0 || string(x.Stdout.Data) != "alive\n") {
		err = cove.Errorf(cove.Internal, "echo %s with exit code %d and printed %q", x.Outcome, x.ExitCode, x.Stdout.Data)
	}
	return err
}

func keeps(ctx context.Context, f cove.Files) error {
	const text = "still here"
	if err := f.Write(ctx, "health.txt", strings.NewReader(text), 0); err != nil {
		return err
	}
	r, err := f.Read(ctx, "health.txt", 0, 0)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(io.LimitReader(r, 1<<10))
	if err == nil && string(got) != text {
		err = cove.Errorf(cove.Internal, "a file that held %q holds %q", text, got)
	}
	return err
}
