//go:build !lean

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/policy"
)

// explain shows what the command policy of this machine decides. It needs no
// sandbox and leaves no trace.
func (a *app) explain(cmd *cobra.Command, spec cove.Spec, req cove.ExecRequest) error {
	cfg, err := a.load(cmd)
	if err != nil {
		return err
	}
	if _, remote := cfg.Remote(); remote {
		return cove.Errorf(cove.Unsupported, "--explain knows the policies of this machine only").
			Remedy("leave out --url and its settings, or run the command: one that is refused is never started")
	}
	p, err := daemon.Policy(cfg)
	if err != nil {
		return err
	}
	profile := spec.Policy
	if profile == "" || config.IsPolicyFile(profile) {
		profile = cfg.CommandPolicy
	}
	if profile == "" {
		return cove.InvalidField("--policy", "is not given, so that every command may run; name a policy, such as agent-bash")
	}
	req.Env = spec.Env
	ex, err := p.Explain(profile, req)
	if err != nil {
		return err
	}
	if err := a.print(ex, func(w io.Writer) error { return showExplanation(w, ex) }); err != nil {
		return err
	}
	if ex.Decision.Effect != cove.Allow {
		return exitError{exitRefused}
	}
	return nil
}

func showExplanation(w io.Writer, ex policy.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %s: %s\n", escape(ex.Profile), escape(string(ex.Decision.Effect)))
	if r := ex.Decision.Refusal; r != nil {
		fmt.Fprintf(&b, "  %s\n", escape(refusal(r)))
	}
	for _, p := range ex.Programs {
		place := ""
		if p.Line > 0 {
			place = fmt.Sprintf(" at line %d, column %d", p.Line, p.Column)
		}
		fmt.Fprintf(&b, "  %s %s%s: %s\n", p.Kind, escape(p.Name), place, p.Effect)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
