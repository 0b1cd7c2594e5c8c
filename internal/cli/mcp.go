//go:build !lean

package cli

import (
	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/mcpserver"
)

func (a *app) mcpCommand() *cobra.Command {
	var session, template string
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Serve an MCP client over standard input and output",
		Long: `Serves the tools of Cove to a client of the Model Context Protocol, over standard
input and output, until its input ends. A client starts it; cove mcp install
says how to tell one.

The client gets a sandbox with its first call and keeps it, with files and
variables, until it goes; then the sandbox is stopped, and its files stay until
its idle time is over. With --session everything happens in that session, which
is left as it is. Sandboxes are held by the server of COVE_HOME, which is started
when it is needed, or by the one that --url names.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg := mcpserver.Config{Version: version, Template: template, Session: cove.ID(session)}
			switch {
			case session != "" && !cfg.Session.Valid():
				return cove.InvalidField("--session", "%.80q is not the id of a sandbox", session)
			case session != "" && template != "":
				return cove.InvalidField("--template", "is of no use with --session, which has its own")
			}
			p, err := a.lasting(cmd)
			if err != nil {
				return err
			}
			defer func() { err = joinTidy(err, p.close()) }()
			cfg.Budget, cfg.ToolImports = p.cfg.Faces.MCPBudget, p.cfg.ToolImports()
			return mcpserver.Stdio(cmd.Context(), cfg, p, a.sys.Stdin, a.sys.Stdout)
		},
	}
	cmd.Flags().StringVarP(&session, "session", "s", "", "the session to use for everything, by its `ID`")
	cmd.Flags().StringVarP(&template, "template", "t", "", "the `template` of the client's sandbox")
	cmd.AddCommand(a.mcpInstallCommand())
	return cmd
}
