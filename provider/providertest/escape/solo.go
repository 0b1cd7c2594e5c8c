package escape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cove-sandbox/cove"
)

// bringer is what brings the attacker along into a sandbox for one program, which
// nobody can upload it to: its own input.
const bringer = `cat >"$0" && chmod 755 "$0" && exec "$@" </dev/null`

// startSolo starts a program in a sandbox of its own, with the attacker in it
// where the attack needs it.
func (r *round) startSolo(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	soloist, ok := cove.As[cove.Soloist](r.p)
	if !ok {
		return nil, cove.Errorf(cove.Unsupported, "provider %s makes no sandboxes for one program", r.p.Name())
	}
	spec := r.specFor(r.needs)
	spare, err := soloist.PrepareSolo(ctx, cove.Mold{Provider: r.p.Name(), Template: spec.Template, Workspace: spec.Workspace.Kind, Solo: true, Resources: spec.Resources})
	if err != nil {
		return nil, fmt.Errorf("prepare a sandbox: %w", err)
	}
	box, err := spare.Claim(ctx, cove.NewID(), spec)
	if err != nil {
		return nil, fmt.Errorf("claim a sandbox: %w", err)
	}
	r.solos = append(r.solos, box)
	if !r.needs.wantsAttacker() {
		return box.Start(ctx, cmd)
	}
	f, err := os.Open(r.attacker)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the attacker %s cannot be read", r.attacker)
	}
	r.inputs = append(r.inputs, f)
	cmd.Argv = append([]string{"sh", "-c", bringer, cove.WorkspacePath + "/" + Name}, cmd.Argv...)
	cmd.Stdin = bufio.NewReader(f)
	return box.Start(ctx, cmd)
}

// endSolos ends all sandboxes of the round.
func (r *round) endSolos(ctx context.Context) error {
	var errs []error
	for _, box := range r.solos {
		errs = append(errs, r.destroy(ctx, box))
	}
	for _, f := range r.inputs {
		errs = append(errs, f.Close())
	}
	r.solos, r.inputs = nil, nil
	return errors.Join(errs...)
}
