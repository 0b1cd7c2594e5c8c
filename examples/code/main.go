// Command code runs code that remembers: in sessions, of several sizes, with
// files of the host, in two languages at once, with pictures and tables as
// answers, and with errors that can be told apart. With COVE_URL it does so on a
// server, and else in this process; what it prints is the same. It must not look
// behind the platform's interface.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/inprocess"
)

func main() {
	inprocess.Main()
	if err := run(context.Background(), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// platform is what both modes give.
type platform interface {
	cove.Platform
	Close() error
}

// open opens the platform that the environment names. All other settings come
// from there too.
func open(ctx context.Context) (platform, error) {
	if url := os.Getenv("COVE_URL"); url != "" {
		return client.New(url, os.Getenv("COVE_API_KEY"))
	}
	return inprocess.Open(ctx, inprocess.Config{})
}

// show is a program in parts.
type show struct {
	cove.Platform

	out io.Writer
}

func run(ctx context.Context, out io.Writer) error {
	p, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	s := show{Platform: p, out: out}
	for _, part := range []func(context.Context) error{s.sessions, s.flavors, s.volumes, s.together, s.picture, s.table, s.resources, s.failures} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s show) line(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format+"\n", args...) // there is nobody to tell that nobody listens
}

// code runs code in a session, and returns what it gave if it went well.
func (s show) code(ctx context.Context, id cove.ID, language, code string) (*cove.CodeResult, error) {
	r, err := s.Contexts(id).Run(ctx, cove.CodeRequest{Language: language, Code: code})
	if err != nil {
		return nil, err
	}
	return r, r.Err()
}

// with opens a session for as long as do takes.
func (s show) with(ctx context.Context, spec cove.Spec, do func(session *cove.Session) error) error {
	session, err := s.Sessions().Open(ctx, cove.OpenRequest{Spec: spec})
	if err != nil {
		return err
	}
	defer func() { _, _ = s.Sessions().Close(context.WithoutCancel(ctx), session.ID, false) }()
	return do(session)
}

// sessions shows that code remembers in its session, and that another session
// knows nothing of it.
func (s show) sessions(ctx context.Context) error {
	return s.with(ctx, cove.Spec{User: "ada", Thread: "one"}, func(session *cove.Session) error {
		first, err := s.code(ctx, session.ID, "python", "x = 42")
		if err != nil {
			return err
		}
		second, err := s.code(ctx, first.Session, "python", "print(f'x = {x}')\nx + 1")
		if err != nil {
			return err
		}
		s.line("session: printed %q, the value is %s, fresh %v and then %v", second.Stdout.Data, second.Results[0]["text/plain"], first.Fresh, second.Fresh)
		return s.with(ctx, cove.Spec{User: "ada", Thread: "two"}, func(other *cove.Session) error {
			_, err := s.code(ctx, other.ID, "python", "print(x)")
			s.line("another session: %s", cove.MessageOf(err))
			return nil
		})
	})
}

// flavors shows sessions of several sizes.
func (s show) flavors(ctx context.Context) error {
	for _, flavor := range []string{"small", "medium"} {
		err := s.with(ctx, cove.Spec{Flavor: flavor}, func(session *cove.Session) error {
			r, err := s.code(ctx, session.ID, "python", "sum(i * i for i in range(100_000))")
			if err != nil {
				return err
			}
			size := session.Spec.Resources
			s.line("%s: %g CPUs, %s, %s", flavor, size.CPUs, size.Memory, r.Results[0]["text/plain"])
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// volumes shows files of the host, where the settings share some with all
// sandboxes: MSB_SHARED_VOLUME_PATH.
func (s show) volumes(ctx context.Context) error {
	return s.with(ctx, cove.Spec{}, func(session *cove.Session) error {
		for _, v := range session.Spec.Volumes {
			s.line("volume: %s, writable %v", v.Target, v.Write)
		}
		if len(session.Spec.Volumes) < 2 {
			s.line("volumes: none that are shared")
			return nil
		}
		in, out := session.Spec.Volumes[0].Target, session.Spec.Volumes[1].Target
		_, err := s.code(ctx, session.ID, "python", strings.NewReplacer("IN", in, "OUT", out).Replace(`
with open("IN/data.txt") as f:
    text = f.read()
with open("OUT/result.txt", "w") as f:
    f.write(text.upper())
`))
		return err
	})
}
