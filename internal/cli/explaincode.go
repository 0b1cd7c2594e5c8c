//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// explainOnce shows what Python code imports, by the interpreter of a template. No
// session is made.
func (a *app) explainOnce(cmd *cobra.Command, spec cove.Spec, req cove.CodeRequest) (err error) {
	p, err := a.oneShot(cmd, spec, false)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	return a.explainCode(cmd.Context(), p, "", spec.Template, req)
}

// explainIn does so by the interpreter of a session.
func (a *app) explainIn(cmd *cobra.Command, session string, req cove.CodeRequest) error {
	return a.withSession(cmd, session, func(ctx context.Context, p link, id cove.ID) error {
		return a.explainCode(ctx, p, id, "", req)
	})
}

func (a *app) explainCode(ctx context.Context, p cove.Platform, id cove.ID, template string, req cove.CodeRequest) error {
	language := req.Language
	if language == "" {
		language = "python" // the context knows better, and no other can be looked into
	}
	found, err := p.Contexts(id).Analyze(ctx, cove.AnalyzeRequest{Language: language, Code: req.Code, Template: template, Imports: req.Imports})
	if err != nil {
		return err
	}
	if err := a.print(wire.AnalysisOf(found), func(w io.Writer) error { return showAnalysis(w, found) }); err != nil {
		return err
	}
	if found.Decision.Effect != cove.Allow {
		return exitError{exitRefused}
	}
	return nil
}

func showAnalysis(w io.Writer, found *cove.CodeAnalysis) error {
	var b strings.Builder
	r := found.Security
	fmt.Fprintf(&b, "imports %s: %s\n", escape(string(r.Mode)), escape(string(found.Decision.Effect)))
	if d := found.Decision.Refusal; d != nil {
		fmt.Fprintf(&b, "  %s\n", escape(refusal(d)))
	}
	if r.Syntax != nil {
		fmt.Fprintf(&b, "  line %d: %s: %s\n", r.Syntax.Line, escape(r.Syntax.Name), escape(r.Syntax.Value))
	}
	if r.Unread != "" {
		fmt.Fprintf(&b, "  not read: %s\n", escape(r.Unread))
	}
	on := map[cove.Import]bool{}
	for _, i := range r.Blocked {
		on[i] = true
	}
	for _, i := range r.Imports {
		name := i.Module
		if i.Name != "" {
			name += " (" + i.Name + ")"
		}
		dangerous := ""
		if on[i] {
			dangerous = ": on the list"
		}
		fmt.Fprintf(&b, "  %s %s at line %d, column %d%s\n", escape(i.How), escape(name), i.Line, i.Column, dangerous)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxWarned bounds the lines about imports; --json and --explain have all.
const maxWarned = 8

// warnImports says beside the answer what the mode warn found.
func (a *app) warnImports(r *cove.SecurityReport) {
	if r == nil || r.Mode != cove.ImportsWarn {
		return
	}
	if r.Unread != "" {
		a.note("warning: the imports of this code could not be found: " + r.Unread)
	}
	for _, i := range r.Blocked[:min(len(r.Blocked), maxWarned)] {
		a.note(fmt.Sprintf("warning: import of %s at line %d, column %d is on the list", i.Module, i.Line, i.Column))
	}
	if more := len(r.Blocked) - maxWarned; more > 0 {
		a.note(fmt.Sprintf("warning: %d more are; --explain shows all", more))
	}
}
