//go:build !lean

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
)

// mcpClient is a program that can use MCP servers: where it looks for them, and in
// which form.
type mcpClient struct {
	name string
	file []string // below its base
	base func(a *app) (string, error)
	list string // the member of the file that holds the servers; "" for TOML
	kind bool   // an entry says that it is a program
}

// mcpClients are those that are known, the usual one first.
func mcpClients() []mcpClient {
	return []mcpClient{
		{"claude-code", []string{".mcp.json"}, (*app).workDir, "mcpServers", true},
		{"claude-desktop", []string{"Claude", "claude_desktop_config.json"}, (*app).configDir, "mcpServers", false},
		{"cursor", []string{".cursor", "mcp.json"}, (*app).homeDir, "mcpServers", false},
		{"vscode", []string{".vscode", "mcp.json"}, (*app).workDir, "servers", true},
		{"codex", []string{".codex", "config.toml"}, (*app).homeDir, "", false},
		{"gemini", []string{".gemini", "settings.json"}, (*app).homeDir, "mcpServers", false},
	}
}

func (a *app) workDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the working directory is unknown")
	}
	return dir, nil
}

func (a *app) homeDir() (string, error) {
	if dir, ok := a.sys.Env("HOME"); ok && filepath.IsAbs(dir) {
		return dir, nil
	}
	return "", cove.Errorf(cove.Invalid, "HOME is not set, so that nobody knows where the client has its settings").Remedy("set it, or leave out --write and copy the entry")
}

func (a *app) configDir() (string, error) {
	if dir, ok := a.sys.Env("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := a.homeDir()
	return filepath.Join(home, ".config"), err
}

// mcpEntry is how a client starts the server.
type mcpEntry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func (a *app) mcpInstallCommand() *cobra.Command {
	var client, name, program string
	var write bool
	var names []string
	for _, c := range mcpClients() {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:   "install [flags]",
		Short: "Print the entry that tells a client of cove mcp",
		Long: `Prints the entry for the settings of an MCP client, and the file that it belongs
in. With --write it is put there: other entries stay, an earlier one of the same
name is replaced (but for codex, where it is left to you), and the file as it was is
kept beside it with the ending .bak.

Flags that say which server to use, such as --home or --url, become a part of the
entry. A key does not: set COVE_API_KEY where the client runs.`,
		Example: `  cove mcp install --client cursor --write
  cove mcp install --client codex`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			i := slices.Index(names, client)
			switch {
			case i < 0:
				return cove.InvalidField("--client", "%.40q is unknown; use one of %s", client, strings.Join(names, ", "))
			case !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name):
				return cove.InvalidField("--name", "%.80q cannot be the name of a server; use letters, digits, - and _", name)
			}
			e := mcpEntry{Command: program, Args: mcpArguments(cmd)}
			if e.Command == "" {
				e.Command = thisProgram()
			}
			return a.mcpInstall(mcpClients()[i], name, e, write)
		},
	}
	cmd.Flags().StringVar(&client, "client", names[0], "the `client`: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(&name, "name", "cove", "the `name` that the client knows the server by")
	cmd.Flags().StringVar(&program, "command", "", "the `path` of cove, if it is not this one")
	cmd.Flags().BoolVar(&write, "write", false, "put the entry into the client's file")
	return cmd
}

// mcpArguments are those that lead to the same server.
func mcpArguments(cmd *cobra.Command) []string {
	args := []string{"mcp"}
	for _, flag := range globalFlags {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			value := f.Value.String()
			if abs, err := filepath.Abs(value); err == nil && flag != "url" {
				value = abs // the client starts it elsewhere
			}
			args = append(args, "--"+flag, value)
		}
	}
	return args
}

// thisProgram is the path by which this program was started; its own file may be a
// copy that is gone tomorrow.
func thisProgram() string {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "cove"
	}
	return path
}

func (a *app) mcpInstall(c mcpClient, name string, e mcpEntry, write bool) error {
	if c.kind {
		e.Type = "stdio"
	}
	base, err := c.base(a)
	if err != nil && write {
		return err
	}
	path := filepath.Join(append([]string{base}, c.file...)...)
	text, err := c.entry(name, e)
	if err != nil {
		return err
	}
	if write {
		if err := c.put(path, name, e); err != nil {
			return err
		}
	}
	return a.print(map[string]any{"client": c.name, "file": path, "entry": e, "written": write}, func(w io.Writer) error {
		if write {
			_, err := fmt.Fprintf(w, "%s has the server %s now; start the client again\n", escape(path), name)
			return err
		}
		_, err := fmt.Fprintf(w, "# for %s\n%s", escape(path), text)
		return err
	})
}

// entry is a file with this entry alone.
func (c mcpClient) entry(name string, e mcpEntry) (string, error) {
	if c.list == "" {
		return tomlEntry(name, e)
	}
	text, err := withMember(nil, []string{c.list, name}, e)
	return string(text), err
}

// tomlEntry writes strings as JSON does, which TOML reads alike.
func tomlEntry(name string, e mcpEntry) (string, error) {
	command, err := json.Marshal(e.Command)
	if err != nil {
		return "", cove.Wrap(cove.Internal, err, "the entry cannot be written")
	}
	args, err := json.Marshal(e.Args)
	if err != nil {
		return "", cove.Wrap(cove.Internal, err, "the entry cannot be written")
	}
	return fmt.Sprintf("[mcp_servers.%s]\ncommand = %s\nargs = %s\n", name, command, strings.ReplaceAll(string(args), ",", ", ")), nil
}
