//go:build !lean

package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
)

// codeText runs Python code and prints what a model would get. What keeps it from
// running is a text too.
func (a *app) codeText(cmd *cobra.Command, session string, spec cove.Spec, req cove.CodeRequest) error {
	x := agenttool.ExecutionResult{}
	run := func(ctx context.Context, p link, id cove.ID) error {
		p.timed(&req.Limits)
		o := agenttool.Options{Session: id, Timeout: req.Limits.Wall, Imports: p.cfg.ToolImports()}
		asked := o.Request(req.Code)
		asked.Context, asked.Trusted = req.Context, req.Trusted
		asked.Imports = asked.Imports.Tighten(req.Imports)
		r, err := runInContext(ctx, p.Contexts(id), asked)
		if err != nil {
			return err
		}
		x = agenttool.Result(r)
		return nil
	}
	var err error
	if session != "" {
		err = a.withSession(cmd, session, run)
	} else {
		err = a.textOnce(cmd, spec, run)
	}
	if err != nil && x.Text == "" { // what only tidied up badly has run
		x = agenttool.Failed(err, req.Limits.Wall)
	}
	return a.print(x, func(w io.Writer) error {
		_, err := io.WriteString(w, escapeLines(x.Text)+"\n")
		return err
	})
}

// textOnce runs something in a session that ends with it.
func (a *app) textOnce(cmd *cobra.Command, spec cove.Spec, run func(context.Context, link, cove.ID) error) (err error) {
	p, err := a.oneShot(cmd, spec, false)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	s, err := a.openOnce(cmd.Context(), p, spec)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, closeSession(cmd.Context(), p, s.ID)) }()
	return run(cmd.Context(), p, s.ID)
}
