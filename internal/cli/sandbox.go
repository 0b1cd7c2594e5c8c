//go:build !lean

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sandbox",
		Aliases: []string{"sbx"},
		Short:   "Keep sandboxes: create, use, stop, copy, remove",
		Long: `Keeps sandboxes from one command to the next.

They live in the daemon of COVE_HOME, which is started when it is needed and
ends when it has had nothing to do for a while; or on the server that --url
names.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.createCommand(), a.lsCommand(), a.getCommand(), a.execCommand(), a.sandboxCodeCommand(), a.cpCommand(),
		a.psCommand(), a.logsCommand(), a.attachCommand(), a.statsCommand(), a.snapshotCommand(), a.forkCommand(), a.rmCommand(),
		a.networkCommand(), a.connectionsCommand(), a.urlCommand(), a.portCommand(), a.trialCommand(),
		a.trialEndCommand("commit", "Keep what is on trial in sandboxes", func(ctx context.Context, t cove.Trials) error { return t.Commit(ctx) }),
		a.trialEndCommand("discard", "Take back what is on trial in sandboxes", func(ctx context.Context, t cove.Trials) error { return t.Discard(ctx) }),
	)
	for _, c := range []stateChange{
		{"start", "Bring stopped sandboxes back with their files", func(ctx context.Context, p cove.Platform, id cove.ID) (*cove.Session, error) {
			return p.Sessions().Start(ctx, id)
		}},
		{"stop", "Stop sandboxes and keep their files", func(ctx context.Context, p cove.Platform, id cove.ID) (*cove.Session, error) {
			return p.Sessions().Stop(ctx, id)
		}},
		{"pause", "Freeze all that runs in sandboxes", func(ctx context.Context, p cove.Platform, id cove.ID) (*cove.Session, error) {
			return p.Snapshots().Pause(ctx, id)
		}},
		{"resume", "Let paused sandboxes go on", func(ctx context.Context, p cove.Platform, id cove.ID) (*cove.Session, error) {
			return p.Snapshots().Resume(ctx, id)
		}},
	} {
		cmd.AddCommand(a.stateCommand(c))
	}
	return cmd
}

// stateChange is a command that moves sessions to another state.
type stateChange struct {
	name, short string
	do          func(ctx context.Context, p cove.Platform, id cove.ID) (*cove.Session, error)
}

func (a *app) stateCommand(c stateChange) *cobra.Command {
	return &cobra.Command{
		Use:   c.name + " ID...",
		Short: c.short,
		Args:  arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachSession(cmd, args, func(ctx context.Context, p link, id cove.ID) error {
				s, err := c.do(ctx, p, id)
				if err != nil {
					return err
				}
				return a.print(wire.SessionOf(s), func(w io.Writer) error { return printID(w, s.ID) })
			})
		},
	}
}

func printID(w io.Writer, id cove.ID) error {
	_, err := io.WriteString(w, escape(string(id))+"\n")
	return err
}

// sessionID checks an id before anything is asked: a daemon need not be started
// to say that a word is no id.
func sessionID(text string) (cove.ID, error) {
	id := cove.ID(text)
	if !id.Valid() {
		return "", cove.InvalidField("ID", "%.80q is not the id of a sandbox; cove sandbox ls shows them", text)
	}
	return id, nil
}

// withSession does something with one session of the lasting platform.
func (a *app) withSession(cmd *cobra.Command, text string, do func(ctx context.Context, p link, id cove.ID) error) error {
	return a.eachSession(cmd, []string{text}, do)
}

// eachSession does something with each session, all of them also when one
// fails.
func (a *app) eachSession(cmd *cobra.Command, texts []string, do func(ctx context.Context, p link, id cove.ID) error) (err error) {
	ids := make([]cove.ID, len(texts))
	for i, text := range texts {
		if ids[i], err = sessionID(text); err != nil {
			return err
		}
	}
	p, err := a.lasting(cmd)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	var failed error
	for _, id := range ids {
		err := do(cmd.Context(), p, id)
		if _, ended := errors.AsType[exitError](err); ended {
			return err
		}
		if failed != nil && err != nil {
			a.complain(failed)
		}
		if err != nil {
			failed = err
		}
	}
	return failed
}

func (a *app) createCommand() *cobra.Command {
	var f specFlags
	var user, thread, project, idle, onEnd, lifetime, snapshot, key string
	var metadata []string
	var ports []int
	var wait, moves bool
	cmd := &cobra.Command{
		Use:   "create [flags]",
		Short: "Create a sandbox and print its id",
		Long: `Creates a sandbox and prints its id.

With --user or --thread the sandbox that they already have is found again; one
that was created otherwise is refused.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := f.spec(a.sys)
			if err != nil {
				return err
			}
			spec.User, spec.Thread, spec.Project, spec.Ports, spec.Snapshot = user, thread, project, ports, cove.ID(snapshot)
			spec.Workspace.Moves, spec.OnEnd = moves, cove.EndAction(onEnd)
			if spec.Metadata, err = labels("--label", metadata); err != nil {
				return err
			}
			if spec.Idle, err = span("--idle", idle); err != nil {
				return err
			}
			if spec.Lifetime, err = span("--lifetime", lifetime); err != nil {
				return err
			}
			req := cove.OpenRequest{Spec: spec, IdempotencyKey: key}
			if wait {
				req.OnFull = cove.WaitWhenFull
			}
			if err := req.Validate(); err != nil {
				return err
			}
			return a.create(cmd, req)
		},
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&user, "user", "", "whose sandbox it is, by `name`; user and thread find it again")
	fs.StringVar(&thread, "thread", "", "which conversation it belongs to, by `name`")
	fs.StringVar(&project, "project", "", "a `word` to find it by")
	fs.StringArrayVar(&metadata, "label", nil, "a label, as `NAME=value`; may be repeated")
	fs.StringVar(&idle, "idle", "", "stop it after this `time` without activity, such as 30m (MSB_SESSION_TIMEOUT)")
	fs.StringVar(&onEnd, "on-end", "", "what happens after that time, the `action`: close, pause or stop; stop keeps the files for COVE_PAUSED_DAYS")
	fs.StringVar(&lifetime, "lifetime", "", "end it this `time` after its creation, such as 8h")
	fs.IntSliceVar(&ports, "port", nil, "a port `number` that it will listen on; may be repeated")
	fs.StringVar(&snapshot, "snapshot", "", "start with the files of the snapshot with this `ID`")
	fs.BoolVar(&moves, "moves", false, "once it is stopped, let any node of a cluster start it with its files")
	fs.BoolVar(&wait, "wait", false, "wait for room where there is none")
	fs.StringVar(&key, "idempotency-key", "", "the same `key` gives the same sandbox")
	return cmd
}

func (a *app) create(cmd *cobra.Command, req cove.OpenRequest) (err error) {
	p, err := a.lasting(cmd)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	s, err := a.open(cmd.Context(), p, req)
	if err != nil {
		return err
	}
	return a.print(wire.SessionOf(s), func(w io.Writer) error { return printID(w, s.ID) })
}

func (a *app) lsCommand() *cobra.Command {
	var f cove.SessionFilter
	var state string
	var metadata []string
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List sandboxes",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			f.State = cove.State(state)
			if f.Metadata, err = labels("--label", metadata); err != nil {
				return err
			}
			p, err := a.lasting(cmd)
			if err != nil {
				return err
			}
			defer func() { err = joinTidy(err, p.close()) }()
			return a.listSessions(cmd.Context(), p, f)
		},
	}
	cmd.Flags().StringVar(&f.User, "user", "", "only those of the user of this `name`")
	cmd.Flags().StringVar(&f.Thread, "thread", "", "only those of the thread of this `name`")
	cmd.Flags().StringVar(&f.Project, "project", "", "only those with this project `word`")
	cmd.Flags().StringVar(&state, "status", "", "only those in this `state`, such as running")
	cmd.Flags().StringArrayVar(&metadata, "label", nil, "only those with this label, as `NAME=value`; may be repeated")
	return cmd
}

func (a *app) listSessions(ctx context.Context, p cove.Platform, f cove.SessionFilter) error {
	rows := [][]string{}
	now := time.Now()
	for s, err := range p.Sessions().List(ctx, f) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(wire.SessionOf(s)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{
			string(s.ID), stateWord(s), s.Provider, s.Spec.Flavor, s.Spec.User, s.Spec.Thread,
			ago(now, s.CreatedAt), until(now, s.ExpiresAt),
		})
	}
	if a.json {
		return nil
	}
	return table(a.sys.Stdout, []string{"ID", "STATUS", "PROVIDER", "FLAVOR", "USER", "THREAD", "AGE", "EXPIRES"}, rows)
}

func stateWord(s *cove.Session) string {
	if s.Busy {
		return string(s.State) + " (busy)"
	}
	return string(s.State)
}

// ago and until are times as people say them, in one unit.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return coarse(now.Sub(t))
}

func until(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "in " + coarse(t.Sub(now))
}

func coarse(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get ID",
		Short: "Show all about a sandbox",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd, args[0], func(ctx context.Context, p link, id cove.ID) error {
				s, err := p.Sessions().Get(ctx, id)
				if err != nil {
					return err
				}
				return a.print(wire.SessionOf(s), func(w io.Writer) error { return describe(w, s) })
			})
		},
	}
}

// policyLine is the command policy of a session, and how far it is enforced.
func policyLine(s *cove.Session) string {
	if s.Spec.Policy == "" {
		return ""
	}
	return s.Spec.Policy + ", " + string(cmp.Or(s.Isolation.Policy, cove.Absent))
}

func describe(w io.Writer, s *cove.Session) error {
	network := string(s.Spec.Network.Mode)
	if len(s.Spec.Network.Allow) > 0 {
		network += " " + strings.Join(s.Spec.Network.Allow, ", ")
	}
	lines := [][2]string{
		{"id", string(s.ID)}, {"status", stateWord(s)}, {"cause", s.Cause}, {"provider", s.Provider}, {"instead of", s.Instead}, {"boundary", string(s.Isolation.Boundary)},
	}
	for _, l := range cove.LimitNames() {
		lines = append(lines, [2]string{string(l) + " limit", string(s.Isolation.Of(l))})
	}
	lines = append(lines, [][2]string{
		{"template", s.Spec.Template},
		{"flavor", s.Spec.Flavor},
		{"cpus", fmt.Sprintf("%g", s.Spec.Resources.CPUs)},
		{"memory", s.Spec.Resources.Memory.String()},
		{"workspace", string(s.Spec.Workspace.Kind) + ", " + s.Spec.Workspace.Size.String()},
		{"network", network},
		{"secrets", strings.Join(s.Spec.Network.Secrets, ", ")},
		{"trial", string(s.Trial)},
		{"policy", policyLine(s)},
		{"project", s.Spec.Project},
		{"user", s.Spec.User},
		{"thread", s.Spec.Thread},
		{"tenant", s.Tenant},
		{"owner", s.Owner},
		{"node", s.Node},
		{"created", stamp(s.CreatedAt)},
		{"last activity", stamp(s.LastActivity)},
		{"expires", stamp(s.ExpiresAt)},
	}...)
	var b strings.Builder
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(&b, "%-15s %s\n", l[0], escape(l[1]))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (a *app) rmCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "rm [flags] ID...",
		Short: "End sandboxes and remove their files",
		Args:  arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachSession(cmd, args, func(ctx context.Context, p link, id cove.ID) error {
				snapshot, err := p.Sessions().Close(ctx, id, keep)
				if err != nil {
					return err
				}
				return a.print(wire.ClosedOf(id, snapshot), func(w io.Writer) error {
					if keep {
						return printID(w, snapshot)
					}
					return printID(w, id)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the files as a snapshot and print its id")
	return cmd
}
