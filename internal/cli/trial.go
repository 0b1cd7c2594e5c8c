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

// trialFlags are the flags that put a program's changes on trial.
type trialFlags struct {
	trial, commit, discard, onSuccess bool
}

func (f *trialFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.trial, "trial", false, "put its changes to the files on trial and list them")
	cmd.Flags().BoolVar(&f.commit, "commit", false, "with --trial: keep the changes when it has ended")
	cmd.Flags().BoolVar(&f.discard, "discard", false, "with --trial: take the changes back when it has ended")
	cmd.Flags().BoolVar(&f.onSuccess, "commit-on-success", false, "with --trial: keep the changes if it exits with 0, else take them back")
}

// end says what becomes of the trial.
func (f *trialFlags) end(background bool) (cove.TrialEnd, error) {
	chosen := []cove.TrialEnd{}
	for _, c := range []struct {
		on   bool
		then cove.TrialEnd
	}{{f.commit, cove.ThenCommit}, {f.discard, cove.ThenDiscard}, {f.onSuccess, cove.ThenCommitOnSuccess}} {
		if c.on {
			chosen = append(chosen, c.then)
		}
	}
	switch {
	case len(chosen) > 0 && !f.trial:
		return "", cove.InvalidField("--"+strings.ReplaceAll(string(chosen[0]), "_", "-"), "goes only with --trial")
	case len(chosen) > 1:
		return "", cove.InvalidField("--trial", "ends in one way; choose --commit, --discard or --commit-on-success")
	case f.trial && background:
		return "", cove.InvalidField("--trial", "does not go with --detach: the program runs to its end")
	case len(chosen) == 1:
		return chosen[0], nil
	}
	return cove.ThenKeep, nil
}

// execOnTrial runs a program on trial, shows what it writes and then what it
// changed, and ends with its code.
func (a *app) execOnTrial(ctx context.Context, p cove.Platform, id cove.ID, req cove.TrialRequest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &relay{sys: a.sys, cancel: cancel}
	if !a.json {
		req.OnOutput = out.write
	}
	t, err := p.Trials(id).Run(ctx, req)
	if out.broken() {
		return exitError{exitPipe}
	}
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(wire.TrialOf(t))
	} else if t.Execution.Outcome != cove.Blocked {
		err = printTrial(a.sys.Stderr, id, t)
	}
	if err != nil {
		return err
	}
	return a.ended(t.Execution)
}

// changeLetters are how a change is shown, as version control does.
var changeLetters = map[cove.ChangeKind]string{cove.Created: "A", cove.Modified: "M", cove.Removed: "D"}

// printTrial lists what a trial changed, and says what became of it.
func printTrial(w io.Writer, id cove.ID, t *cove.TrialResult) error {
	var b strings.Builder
	for _, c := range t.Changes {
		name := strings.TrimPrefix(c.Path, cove.WorkspacePath+"/")
		b.WriteString(changeLetters[c.Kind] + " " + escape(name))
		if c.Info != nil {
			switch {
			case c.Info.Mode.IsDir():
				b.WriteString("/")
			case c.Info.Link != "":
				b.WriteString(" -> " + escape(c.Info.Link))
			default:
				b.WriteString("  " + c.Info.Size.String())
			}
		}
		b.WriteString("\n")
	}
	if t.Truncated {
		b.WriteString("… and more\n")
	}
	end := "discarded"
	switch {
	case t.Open:
		end = fmt.Sprintf("on trial: cove sandbox commit %s keeps it, cove sandbox discard %s takes it back", id, id)
	case t.Committed:
		end = "committed"
	}
	fmt.Fprintf(&b, "cove: %d created, %d modified, %d removed, %d bytes written; %s\n", t.Created, t.Modified, t.Removed, int64(t.Bytes), end)
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) trialCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trial ID",
		Short: "Show what is on trial in a sandbox",
		Long: `Shows what has changed in a sandbox since cove sandbox exec --trial, and has been
neither committed nor discarded.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				t, err := p.Trials(id).Get(ctx)
				if err != nil {
					return err
				}
				return a.print(wire.TrialOf(t), func(w io.Writer) error { return printTrial(w, id, t) })
			})
		},
	}
}

// trialEndCommand is a command that ends trials.
func (a *app) trialEndCommand(name, short string, do func(ctx context.Context, t cove.Trials) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID...",
		Short: short,
		Args:  arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachSession(cmd, args, func(ctx context.Context, p link, id cove.ID) error {
				if err := do(ctx, p.Trials(id)); err != nil {
					return err
				}
				return a.print(map[string]cove.ID{"sandbox_id": id}, func(w io.Writer) error { return printID(w, id) })
			})
		},
	}
}
