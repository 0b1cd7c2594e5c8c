package client_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/platformtest"
)

// last drains a stream, tells of its first element, and returns its error.
func last[T any](seq iter.Seq2[T, error], begun func()) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
		begun()
	}
	return nil
}

// dialled connects to what listens at a port, once it does.
func dialled(t *testing.T, p cove.Platform, id cove.ID) net.Conn {
	t.Helper()
	for {
		conn, err := p.Ports(id).Dial(t.Context(), 8080)
		if err == nil {
			return conn
		}
		if !errors.Is(err, cove.Unavailable) {
			t.Fatal(err)
		}
	}
}

// TestRevokedKeysEndWhatGoesOn: all that callers wait for ends at once when
// their key does, with an error that says so, and what they left running runs on.
func TestRevokedKeysEndWhatGoesOn(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"revoked": 0, "expired": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, platformtest.Options{})
			defer r.Close()
			admin := r.As(cove.Principal{Name: "admin", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}})
			s, err := admin.Sessions().Open(t.Context(), cove.OpenRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{"cat", "serve 8080 hi"} {
				if _, err := admin.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: line, KeepStdin: true}); err != nil {
					t.Fatal(err)
				}
			}
			dialled(t, admin, s.ID).Close()
			key, secret, err := admin.Admin().CreateKey(t.Context(), cove.KeyRequest{Tenant: "acme", Scopes: []cove.Scope{cove.ScopeAll}, TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			p, err := client.New(r.server.URL, secret)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			ended, started := goOn(t, p, s.ID)
			if ttl == 0 {
				if err := admin.Admin().RevokeKey(t.Context(), key.ID); err != nil {
					t.Fatal(err)
				}
			}
			for range cap(ended) {
				if end := <-ended; !errors.Is(end.err, cove.Unauthenticated) {
					t.Errorf("%s ended with %v", end.what, end.err)
				}
			}
			_, err = p.Sessions().Get(t.Context(), s.ID)
			if !errors.Is(err, cove.Unauthenticated) {
				t.Errorf("the next request: %v", err)
			}
			running := 0
			for info, err := range admin.Processes(s.ID).List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if info.Running {
					running++
				}
			}
			if running != 2+started {
				t.Errorf("%d background programs run on, want %d", running, 2+started)
			}
			dialled(t, admin, s.ID).Close()
		})
	}
}

type end struct {
	what string
	err  error
}

// goOn begins all that can go on for long, and returns when each has begun. What
// ended how comes through the channel; started is how many programs it left in
// the background, none if its key has expired already.
func goOn(t *testing.T, p cove.Platform, id cove.ID) (_ <-chan end, started int) {
	t.Helper()
	programs := p.Processes(id)
	mine, err := programs.Start(t.Context(), cove.ExecRequest{Line: "echo begun; cat", KeepStdin: true})
	if err != nil && !errors.Is(err, cove.Unauthenticated) {
		t.Fatal(err)
	}
	if started = 1; err != nil {
		mine, started = &cove.ProcessInfo{}, 0
	}
	pipe, feed := io.Pipe()
	t.Cleanup(func() { _ = feed.Close() })
	quiet := func() {}
	all := map[string]func(ctx context.Context, begun func()) error{
		"exec": func(ctx context.Context, _ func()) error {
			_, err := programs.Exec(ctx, cove.ExecRequest{Line: "sleep 1000", Limits: cove.Limits{Wall: time.Hour}})
			return err
		},
		"exec with output": func(ctx context.Context, begun func()) error {
			req := cove.ExecRequest{Line: "echo begun; sleep 1000", Limits: cove.Limits{Wall: time.Hour}, OnOutput: func(cove.Chunk) { begun() }}
			_, err := programs.Exec(ctx, req)
			return err
		},
		"exec with input": func(ctx context.Context, begun func()) error {
			req := cove.ExecRequest{Line: "echo begun; cat", Stdin: pipe, Limits: cove.Limits{Wall: time.Hour}, OnOutput: func(cove.Chunk) { begun() }}
			_, err := programs.Exec(ctx, req)
			return err
		},
		"connect": func(ctx context.Context, begun func()) error { return last(programs.Connect(ctx, mine.PID, 0), begun) },
		"wait":    func(ctx context.Context, _ func()) error { _, err := programs.Wait(ctx, mine.PID); return err },
		"watch":   func(ctx context.Context, _ func()) error { return last(p.Files(id).Watch(ctx, "."), quiet) },
		"events": func(ctx context.Context, begun func()) error {
			return last(p.Admin().Events(ctx, cove.EventFilter{Follow: true}), begun)
		},
		"upload": func(ctx context.Context, _ func()) error {
			body, w := io.Pipe()
			defer w.Close()
			go func() { _, _ = w.Write([]byte("half")) }()
			return p.Files(id).Write(ctx, "half", body, 0o644)
		},
		"tunnel": func(ctx context.Context, begun func()) error {
			conn, err := p.Ports(id).Dial(ctx, 8080)
			if err != nil {
				return err
			}
			defer conn.Close()
			begun()
			_, err = io.Copy(io.Discard, conn)
			// What carries plain bytes can only be closed.
			return errors.Join(err, cove.Errorf(cove.Unauthenticated, "closed"))
		},
	}
	ended := make(chan end, len(all))
	for name, do := range all {
		begun := make(chan struct{}, 1<<16)
		over := make(chan struct{})
		go func() {
			err := do(t.Context(), func() {
				select {
				case begun <- struct{}{}:
				default:
				}
			})
			close(over)
			ended <- end{name, err}
		}()
		switch name {
		case "exec", "wait", "watch", "upload": // they say nothing when they begin
		default:
			select {
			case <-begun:
			case <-over:
			}
		}
	}
	return ended, started
}
