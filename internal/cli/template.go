//go:build !lean

package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

func (a *app) templateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "template",
		Short: "Build, list and remove what sandboxes have in them",
		Long: `A template is what a sandbox has beside its workspace: the host's own programs,
Debian packages over them, or a tree of its own from a directory or an image.
Sandboxes share its files and cannot change them. cove run, cove code and
cove sandbox create take one with --template.

The commands work on COVE_HOME, whether a server has it or not, and for all tenants.
A template NAME is shared with all of them. TENANT/NAME is that of one tenant, which
alone sees it, as NAME; callers of a server build such templates over HTTP.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.templateListCommand(), a.templateBuildCommand(), a.templateRemoveCommand(), a.templateVerifyCommand())
	return cmd
}

// templateHome reads the settings for what is done on this machine only.
func (a *app) templateHome(cmd *cobra.Command) (config.Config, error) {
	cfg, err := a.load(cmd)
	if err != nil {
		return cfg, err
	}
	if _, remote := cfg.Remote(); remote {
		return cfg, cove.Errorf(cove.Unsupported, "templates are files on the machine of the server").
			Remedy("run it there, without --url and COVE_URL; GET /api/templates lists those of a server")
	}
	return cfg, nil
}

func (a *app) templateListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List templates",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.templateHome(cmd)
			if err != nil {
				return err
			}
			list, err := daemon.ListTemplates(cfg)
			if err != nil {
				return err
			}
			return a.showTemplates(list)
		},
	}
}

func (a *app) showTemplates(list []wire.Template) error {
	var rows [][]string
	var notes []string
	for _, t := range list {
		if a.json {
			if err := a.printJSON(t); err != nil {
				return err
			}
			continue
		}
		ready, size := "yes", ""
		if !t.Ready {
			ready = "no"
			notes = append(notes, t.Name+": "+t.Why+"\n  "+t.Remedy)
		}
		if t.Digest != "" {
			size = roughly(t.Size)
		}
		rows = append(rows, []string{t.Name, t.Kind, ready, size, short(t.Digest), t.Source})
	}
	if a.json {
		return nil
	}
	if err := table(a.sys.Stdout, []string{"NAME", "KIND", "READY", "SIZE", "DIGEST", "MADE FROM"}, rows); err != nil {
		return err
	}
	for _, note := range notes {
		if _, err := io.WriteString(a.sys.Stdout, "\n"+escapeLines(note)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// roughly is a size as people say it.
func roughly(b cove.Bytes) string {
	for _, unit := range []struct {
		size cove.Bytes
		name string
	}{{cove.GiB, "GiB"}, {cove.MiB, "MiB"}, {cove.KiB, "KiB"}} {
		if b >= unit.size {
			return strconv.FormatFloat(float64(b)/float64(unit.size), 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// short is what people compare of a digest.
func short(digest string) string {
	return digest[:min(12, len(digest))]
}

func (a *app) templateBuildCommand() *cobra.Command {
	var b daemon.TemplateBuild
	cmd := &cobra.Command{
		Use:   "build [flags] NAME",
		Short: "Build a template",
		Long: `Builds a template from one of the sources below. Those that are builtin, which
are python, node, data and sandbox, need none: they are made from Debian packages,
as far as the host lacks them.

Packages come from the host's own apt, and lie over the host's own programs. Nothing
in them is run on the host: what their installation would run is left out, and
the answer says so. Images need no Docker; a Dockerfile does.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.templateHome(cmd)
			if err != nil {
				return err
			}
			b.Name = args[0]
			if _, ok := terminal(a.sys.Stderr); ok && !a.json {
				bar := &progressLine{w: a.sys.Stderr}
				defer bar.clear()
				b.Tell = bar.show
			}
			t, err := daemon.BuildTemplate(cmd.Context(), cfg, b)
			if err != nil {
				return err
			}
			return a.print(t, func(w io.Writer) error { return a.showBuilt(w, t) })
		},
	}
	cmd.Flags().StringSliceVar(&b.Packages, "package", nil, "a Debian `package`, or the path of a .deb file with a slash in it; may be repeated")
	cmd.Flags().StringVar(&b.Dir, "dir", "", "a `directory` that holds a whole tree")
	cmd.Flags().StringVar(&b.Image, "image", "", "a `path`: what docker save wrote, or an OCI layout")
	cmd.Flags().StringVar(&b.Dockerfile, "dockerfile", "", "a `path`: Docker builds it, with what is beside it")
	cmd.Flags().StringVar(&b.Registry, "registry", "", "an `image` in a registry, such as registry.example.org/tools/alpine:3.22")
	return cmd
}

func (a *app) showBuilt(w io.Writer, t wire.Template) error {
	for _, note := range t.Notes {
		a.note(note)
	}
	if t.Digest == "" {
		_, err := fmt.Fprintf(w, "%s: the host has all of it\n", escape(t.Name))
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %s in %d files, %s\n", escape(t.Name), roughly(t.Size), t.Files, short(t.Digest))
	return err
}

// progressLine is one line of a terminal that changes.
type progressLine struct {
	w     io.Writer
	last  time.Time
	step  string
	shown bool
}

// redraw is how often the line changes within a step.
const redraw = 100 * time.Millisecond

func (p *progressLine) show(t daemon.TemplateProgress) {
	if t.Step == p.step && time.Since(p.last) < redraw {
		return
	}
	p.step, p.last, p.shown = t.Step, time.Now(), true
	_, _ = io.WriteString(p.w, "\r\x1b[K"+progressText(t)) // it is beside the answer
}

func (p *progressLine) clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // it is beside the answer
	}
}

// progressText is what the line says.
func progressText(t daemon.TemplateProgress) string {
	parts := []string{t.Step}
	if t.Total > 0 {
		parts = append(parts, strconv.Itoa(t.Done)+"/"+strconv.Itoa(t.Total))
	}
	if t.Bytes > 0 {
		text := roughly(t.Bytes)
		if t.Of > 0 {
			text += " of " + roughly(t.Of)
		}
		parts = append(parts, text)
	}
	if t.What != "" {
		parts = append(parts, escape(t.What))
	}
	return strings.Join(parts, "  ")
}

func (a *app) templateRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove templates",
		Long: `Removes templates. Sandboxes that have one keep its files, which go when those
sandboxes and their server have ended and another template is built or removed,
or the next server starts.`,
		Args: arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachTemplate(cmd, args, func(ctx context.Context, cfg config.Config, name string) error {
				kept, err := daemon.RemoveTemplate(ctx, cfg, name)
				if err != nil {
					return err
				}
				if kept {
					a.note(name + ": its files stay until the sandboxes and the server that have them are gone")
				}
				return a.print(map[string]any{"name": name, "files_kept": kept}, func(w io.Writer) error { return printLine(w, name) })
			})
		},
	}
}

func (a *app) templateVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify NAME...",
		Short: "Read all files of templates and compare them with what was built",
		Args:  arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachTemplate(cmd, args, func(ctx context.Context, cfg config.Config, name string) error {
				t, err := daemon.VerifyTemplate(ctx, cfg, name)
				if err != nil {
					return err
				}
				return a.print(t, func(w io.Writer) error { return a.showVerified(w, t) })
			})
		},
	}
}

func (a *app) showVerified(w io.Writer, t wire.Template) error {
	switch {
	case t.Digest != "":
		return printLine(w, t.Name+": "+t.Digest)
	case t.Ready:
		return printLine(w, t.Name+": the host's own files, nothing to compare")
	}
	return printLine(w, t.Name+": "+t.Why)
}

func printLine(w io.Writer, text string) error {
	_, err := io.WriteString(w, escape(text)+"\n")
	return err
}

// eachTemplate does something to each of some templates.
func (a *app) eachTemplate(cmd *cobra.Command, names []string, do func(context.Context, config.Config, string) error) error {
	cfg, err := a.templateHome(cmd)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := do(cmd.Context(), cfg, name); err != nil {
			return err
		}
	}
	return nil
}
