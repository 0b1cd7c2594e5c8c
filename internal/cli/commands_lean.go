//go:build lean

package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// commands are those of the lean program.
func (a *app) commands() []command { return []command{{"run", "work", a.runCommand}} }

// errWhole says that the whole program must do it. Nothing was done yet.
var errWhole = errors.New("this needs the whole program")

// isForeign reports whether an error is for another program to tell.
func isForeign(err error) bool { return errors.Is(err, errWhole) }

// Lean is [Main] for the lean program, which can run programs in local sandboxes.
// It is false where that is not what the command asks for: then nothing was done,
// and the whole program must be executed with the same arguments.
func Lean() (code int, ok bool) {
	code = main(func(ctx context.Context, sys System) int {
		code, err := run(ctx, sys)
		ok = !errors.Is(err, errWhole)
		return code
	})
	return code, ok
}

// leanTemplate is the one that the lean program has.
const leanTemplate = "base"

// leave returns errWhole for what this program cannot do.
func leave(cfg config.Config, spec cove.Spec) error {
	out := spec.Network.Mode != "" && spec.Network.Mode != cove.NetworkNone || len(spec.Network.Secrets) > 0
	built := spec.Template != "" && spec.Template != leanTemplate
	judged := spec.Policy != "" || cfg.CommandPolicy != "" || len(cfg.Policies) > 0 || len(cfg.Imports) > 0
	if _, remote := cfg.Remote(); out || built || judged || remote || !daemon.Here(append(cfg.Fallback, cfg.Provider, spec.Provider)...) {
		return errWhole
	}
	return nil
}

func (a *app) lasting(*cobra.Command) (link, error) { return link{}, errWhole }

func dial(config.Config, string) (link, error) { return link{}, errWhole }

func (a *app) explain(*cobra.Command, cove.Spec, cove.ExecRequest) error { return errWhole }
