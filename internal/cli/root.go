package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// app is one run of the command line.
type app struct {
	sys  System
	json bool
}

// Run runs one command and returns the exit code of the process.
func Run(ctx context.Context, sys System) int {
	code, _ := run(ctx, sys)
	return code
}

func run(ctx context.Context, sys System) (int, error) {
	a := &app{sys: sys}
	root := a.root(sys.Args) //nolint:contextcheck // commands get ctx from ExecuteContext
	root.SetArgs(sys.Args)
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	err := root.ExecuteContext(ctx)
	if _, ours := errors.AsType[*cove.Error](err); !ours && errors.Is(err, syscall.EPIPE) {
		err = exitError{exitPipe} // whoever read the answer has gone
	}
	if !isForeign(err) {
		a.complain(err)
	}
	return exitCode(err), err
}

// command is one command below the root, made when it is needed.
type command struct {
	name, group string
	make        func() *cobra.Command
}

// root is the command line for args. Where they start with the name of a
// command, no other one is made: a run must not wait for all flags of all of
// them.
func (a *app) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "cove",
		Short: "Run code that nobody has read yet, in sandboxes that stay",
		Long: `Cove runs untrusted programs in isolated sandboxes.

cove run starts one program in a fresh sandbox and ends with its exit code.
cove sandbox keeps sandboxes, which a daemon holds for you; it is started when
it is needed. With --url all commands talk to a server instead.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON; lists are one object per line")
	addSettings(root.PersistentFlags(), globalFlags)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cove.Errorf(cove.Invalid, "%s", err).Remedy("%s --help lists the flags", cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Run things:"},
		&cobra.Group{ID: "operate", Title: "Operate Cove:"},
	)
	commands := a.commands()
	if i := slices.IndexFunc(commands, func(c command) bool { return len(args) > 0 && c.name == args[0] }); i >= 0 {
		commands = commands[i : i+1]
		root.CompletionOptions.DisableDefaultCmd = true // which nobody asks for
	}
	for _, c := range commands {
		made := c.make()
		made.GroupID = c.group
		root.AddCommand(made)
	}
	root.SetHelpCommandGroupID("operate")
	root.SetCompletionCommandGroupID("operate")
	return root
}

// flagHelp is the first sentence about a setting and its name elsewhere.
func flagHelp(s config.Setting) string {
	doc, _, _ := strings.Cut(s.Doc, ". ")
	doc = strings.TrimSuffix(doc, ".")
	// The word in quotes is what the help shows for the value.
	value := map[string]string{"home": "directory", "config": "file", "url": "server", "addr": "address", "log-level": "level", "provider": "provider", "e2b-domain": "domain"}[s.Flag]
	doc = strings.Replace(doc, value, "`"+value+"`", 1)
	return strings.ToLower(doc[:1]) + doc[1:] + " (" + s.Env + ")"
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	return cove.Errorf(cove.Invalid, "%s takes no argument and was given %.80q", cmd.CommandPath(), args[0]).
		Remedy("%s --help says how to use it", cmd.CommandPath())
}

func unknownCommand(cmd *cobra.Command, name string) error {
	err := cove.Errorf(cove.Invalid, "%s has no command %.80q", cmd.CommandPath(), name)
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return err.Remedy("did you mean %s?", strings.Join(near, " or "))
	}
	return err.Remedy("%s --help lists the commands", cmd.CommandPath())
}

// arguments demands between least and most; most < 0 means any number.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		wrong := "too few"
		if len(args) > least {
			wrong = "too many"
		}
		return cove.Errorf(cove.Invalid, "%s was given %s arguments", cmd.CommandPath(), wrong).Remedy("usage: %s", cmd.UseLine())
	}
}

// globalFlags are settings that every command takes.
var globalFlags = []string{"home", "config", "url"}

// addSettings gives a command flags that are settings.
func addSettings(flags interface {
	String(name, value, usage string) *string
}, names []string,
) {
	for s := range config.Settings() {
		if slices.Contains(names, s.Flag) {
			flags.String(s.Flag, "", flagHelp(s))
		}
	}
}

// load reads the settings, with the flags of cmd that are settings: those of
// every command, and extra ones.
func (a *app) load(cmd *cobra.Command, extra ...string) (config.Config, error) {
	flags := map[string]string{}
	for _, name := range slices.Concat(globalFlags, extra) {
		if !cmd.Flags().Changed(name) {
			continue
		}
		text, err := cmd.Flags().GetString(name)
		if err != nil {
			return config.Config{}, fmt.Errorf("flag %s: %w", name, err)
		}
		flags[name] = text
	}
	// A policy is the server's to know by name; a file is ours to read.
	if f := cmd.Flags().Lookup("policy"); f != nil && config.IsPolicyFile(f.Value.String()) {
		flags["policy"] = f.Value.String()
	}
	return config.Load(config.Sources{Env: a.sys.Env, Flags: flags, Providers: providerNames(), Root: isRoot()})
}

// print writes the answer to a command: as JSON with --json, else as text.
func (a *app) print(value any, text func(w io.Writer) error) error {
	if a.json {
		return a.printJSON(value)
	}
	return text(a.sys.Stdout)
}

// printJSON writes one value on one line.
func (a *app) printJSON(value any) error {
	enc := json.NewEncoder(a.sys.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			return a.print(map[string]string{"version": version, "go": runtime.Version(), "platform": platform}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "cove %s (%s, %s)\n", version, runtime.Version(), platform)
				return err
			})
		},
	}
}
