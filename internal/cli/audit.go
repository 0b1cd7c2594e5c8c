//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read and check the journal of what was done",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.auditListCommand(), a.auditVerifyCommand())
	return cmd
}

func (a *app) auditListCommand() *cobra.Command {
	var f cove.EventFilter
	var session string
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List what was done, oldest first",
		Long: `Lists the lines of the journal, oldest first: those of the server of COVE_HOME
and those of cove run and cove code in process, each under the name of its
journal. With --url it lists the server's own.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if session != "" {
				if f.Session, err = sessionID(session); err != nil {
					return err
				}
			}
			if f.Limit < 0 {
				return cove.InvalidField("--limit", "%d is negative; 0 means all", f.Limit)
			}
			events, done, err := a.events(cmd, f)
			if err != nil {
				return err
			}
			defer func() { err = joinTidy(err, done()) }()
			return a.showEvents(events)
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only lines about the sandbox with this `ID`")
	cmd.Flags().StringVar(&f.Kind, "kind", "", "only lines of this `kind`, such as session.open, or session. for all of them")
	cmd.Flags().IntVar(&f.Limit, "limit", 0, "the `number` of lines to show at most; 0 means all")
	cmd.Flags().BoolVarP(&f.Follow, "follow", "f", false, "go on with new lines")
	return cmd
}

// line is an event with the name of the journal that it is in.
type line struct {
	wire.Event

	Journal string `json:"journal,omitempty"`
}

// events returns the lines to show and how to let go of them.
func (a *app) events(cmd *cobra.Command, f cove.EventFilter) (iter.Seq2[line, error], func() error, error) {
	ctx := cmd.Context()
	cfg, err := a.load(cmd)
	if err != nil {
		return nil, nil, err
	}
	if address, remote := cfg.Remote(); remote {
		p, err := dial(cfg, address)
		if err != nil {
			return nil, nil, err
		}
		return named("", p.Admin().Events(ctx, f)), p.close, nil
	}
	if f.Follow {
		return a.following(ctx, cfg, f)
	}
	nothing := func() error { return nil }
	journals, err := daemon.Journals(cfg.Home)
	if err != nil {
		return nil, nil, err
	}
	var all []iter.Seq2[line, error]
	for _, j := range journals {
		all = append(all, named(j.Name, j.Read(ctx, f)))
	}
	return first(f.Limit, merged(all)), nothing, nil
}

// following asks the server of COVE_HOME, who alone knows of new lines at once.
func (a *app) following(ctx context.Context, cfg config.Config, f cove.EventFilter) (iter.Seq2[line, error], func() error, error) {
	c, err := daemon.Dial(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return named(daemon.MainJournal, c.Admin().Events(ctx, f)), c.Close, nil
}

func named(journal string, events iter.Seq2[cove.Event, error]) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for e, err := range events {
			if !yield(line{Event: wire.EventOf(e), Journal: journal}, err) {
				return
			}
		}
	}
}

// merged yields the lines of all journals by their time.
func merged(all []iter.Seq2[line, error]) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		var heads []*head
		for _, seq := range all {
			h := &head{}
			next, stop := iter.Pull2(seq)
			defer stop()
			h.next = next
			if h.advance() {
				heads = append(heads, h)
			}
		}
		for len(heads) > 0 {
			oldest := 0
			for i, h := range heads {
				if h.err != nil || heads[oldest].err == nil && h.line.Time.Before(heads[oldest].line.Time) {
					oldest = i
				}
			}
			h := heads[oldest]
			if !yield(h.line, h.err) || h.err != nil {
				return
			}
			if !h.advance() {
				heads = append(heads[:oldest], heads[oldest+1:]...)
			}
		}
	}
}

// head is the next line of one journal.
type head struct {
	next func() (line, error, bool)
	line line
	err  error
}

func (h *head) advance() (more bool) {
	h.line, h.err, more = h.next()
	return more
}

// first yields so many lines at most; 0 means all.
func first(most int, lines iter.Seq2[line, error]) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		n := 0
		for l, err := range lines {
			if n++; !yield(l, err) || n == most {
				return
			}
		}
	}
}

// showEvents writes lines as they come: a journal can be long.
func (a *app) showEvents(lines iter.Seq2[line, error]) error {
	for l, err := range lines {
		if err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(l)
		} else {
			_, err = io.WriteString(a.sys.Stdout, eventText(l)+"\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eventText is one line for people, columns first, then what else is known.
func eventText(l line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-9s %6d  %-22s %-8s", l.Time.UTC().Format(time.RFC3339), l.Journal, l.Seq, l.Kind, l.Phase)
	for _, f := range [][2]string{
		{"intent", number(l.Intent)},
		{"principal", l.Principal},
		{"tenant", l.Tenant},
		{"session", string(l.SessionID)},
		{"provider", l.Provider},
		{"effect", string(l.Effect)},
		{"rule", l.Rule},
		{"code", string(l.Code)},
		{"outcome", string(l.Outcome)},
	} {
		if f[1] != "" {
			b.WriteString(" " + f[0] + "=" + f[1])
		}
	}
	return strings.TrimRight(escape(b.String()), " ")
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func (a *app) auditVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that no line of the journal was changed, lost or moved",
		Long: `Checks every journal below COVE_HOME, line by line, and prints one line for each
problem. The exit code is 1 if there is any. It needs no server and may run
beside one.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd)
			if err != nil {
				return err
			}
			if _, remote := cfg.Remote(); remote {
				return cove.Errorf(cove.Unsupported, "a journal is verified where its files are").Remedy("run cove audit verify on the server's machine, without --url")
			}
			return a.verify(cmd.Context(), cfg)
		},
	}
}

func showVerdict(w io.Writer, v daemon.Verdict) error {
	text := fmt.Sprintf("%s: %d lines, all good\n", v.Journal, v.Lines)
	if len(v.Problems) > 0 {
		text = ""
	}
	for _, p := range v.Problems {
		text += escape(v.Journal+": "+p) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func (a *app) verify(ctx context.Context, cfg config.Config) error {
	journals, err := daemon.Journals(cfg.Home)
	if err != nil {
		return err
	}
	problems := 0
	for _, j := range journals {
		v, err := j.Verify(ctx)
		if err != nil {
			return err
		}
		problems += len(v.Problems)
		if err := a.print(v, func(w io.Writer) error { return showVerdict(w, v) }); err != nil {
			return err
		}
	}
	if problems > 0 {
		return exitError{exitProblem}
	}
	return nil
}
