package main

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/inprocess"
)

// kind tells errors apart by what somebody would do about them.
func kind(err error) string {
	switch {
	case err == nil:
		return "no error"
	case errors.Is(err, cove.ErrResourceLimit):
		return "a limit: use less, or ask for more"
	case errors.Is(err, cove.ErrCodeExecution):
		return "the code: mend it"
	case errors.Is(err, cove.ErrCommandExecution):
		return "the command: mend it"
	case errors.Is(err, cove.ErrSessionNotFound):
		return "the session: open one"
	case errors.Is(err, cove.ErrConnection):
		return "the connection: try again later"
	case errors.Is(err, cove.ErrConfiguration):
		return "the settings: mend them"
	case errors.Is(err, cove.ErrSandboxCreation):
		return "no sandbox: ask for another kind"
	}
	return "something else"
}

// failures shows one error of each kind.
func (s show) failures(ctx context.Context) error {
	return s.with(ctx, cove.Spec{}, func(session *cove.Session) error {
		_, err := s.code(ctx, session.ID, "python", "1 / 0")
		s.line("%s (%s)", kind(err), cove.MessageOf(err))

		r, err := s.Contexts(session.ID).Run(ctx, cove.CodeRequest{Language: "python", Code: "print('x' * 100)", Limits: cove.Limits{Output: 10}})
		if err != nil {
			return err
		}
		s.line("%s", kind(r.Err()))

		x, err := s.Processes(session.ID).Exec(ctx, cove.ExecRequest{Line: "ls nothing-there >&2"})
		if err != nil {
			return err
		}
		s.line("%s (exit code %d)", kind(x.Err()), x.ExitCode)

		_, err = s.code(ctx, cove.NewID(), "python", "1")
		s.line("%s", kind(err))

		_, err = s.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{Require: cove.Require{Isolation: cove.BoundaryRemote}}})
		s.line("%s", kind(err))

		_, err = inprocess.Open(ctx, inprocess.Config{Settings: map[string]string{"POOL_SIZE": "many"}})
		s.line("%s (%s)", kind(err), cove.MessageOf(err))

		nobody, err := client.New("http://127.0.0.1:1", "")
		if err != nil {
			return err
		}
		defer func() { _ = nobody.Close() }()
		_, err = nobody.Sessions().Get(ctx, session.ID)
		s.line("%s", kind(err))
		return nil
	})
}
