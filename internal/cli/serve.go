//go:build !lean

package cli

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove/internal/daemon"
)

func (a *app) serveCommand() *cobra.Command {
	var show, onDemand, devTLS bool
	settings := []string{"addr", "provider", "log-level", "e2b-domain"}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run the server of COVE_HOME",
		Long: `Runs the server of COVE_HOME until it is interrupted. It listens on COVE_ADDR for
those who have a key, and on a socket in COVE_HOME for you alone. The first
start writes a key for everything into COVE_HOME and says where it is. Each start
at a terminal prints a link that signs a browser in with that key, once.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.load(cmd, settings...)
			if err != nil {
				return err
			}
			switch {
			case show && a.json:
				return cfg.PrintJSON(a.sys.Stdout)
			case show:
				return cfg.PrintYAML(a.sys.Stdout)
			}
			logs, done, err := a.logWriter(cfg.Home, onDemand)
			if err != nil {
				return err
			}
			defer done()
			return daemon.Serve(cmd.Context(), cfg, daemon.Options{
				Version: version, OnDemand: onDemand, DevTLS: devTLS,
				Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: daemon.Level(cfg.LogLevel)})),
				Ready: func(r daemon.Ready) {
					if !onDemand {
						_ = a.print(r, func(w io.Writer) error { return announce(w, r) }) // the log says the same
					}
				},
			})
		},
	}
	addSettings(cmd.Flags(), settings)
	cmd.Flags().BoolVar(&show, "print-config", false, "show the settings and where each comes from, secrets masked, and stop")
	cmd.Flags().BoolVar(&onDemand, "on-demand", false, "end when there was nothing to do for a while")
	cmd.Flags().BoolVar(&devTLS, "dev-tls", false, "answer the hosts of COVE_E2B_DOMAIN with certificates of its own making, to try E2B's SDKs with")
	_ = cmd.Flags().MarkHidden("on-demand") // it is there
	return cmd
}

// logWriter is standard error, or the bounded log of a server that nobody
// watches.
func (a *app) logWriter(home string, onDemand bool) (io.Writer, func(), error) {
	if !onDemand {
		return a.sys.Stderr, func() {}, nil
	}
	l, err := daemon.OpenLog(home)
	if err != nil {
		return nil, nil, err
	}
	return l, func() { _ = l.Close() }, nil // the process ends with it
}

// announce says where the server is. The link that signs a browser in is for
// whoever looks at the terminal: elsewhere, as in a service, it would be kept in a
// log.
func announce(w io.Writer, r daemon.Ready) error {
	text := fmt.Sprintf("cove %s serves %s\n  address  %s\n  socket   %s\n  key      %s\n", version, r.Home, r.URL, r.Socket, r.KeyFile)
	text += others(r)
	switch _, watched := terminal(w); {
	case r.LoginURL == "":
	case !watched:
		text += "  sign in  cove login-link makes a link for a browser\n"
	default:
		text += "  sign in  " + r.LoginURL + "\n           once, within 5 minutes; cove login-link makes another\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// others says what clients of other systems need to know.
func others(r daemon.Ready) (text string) {
	if r.MSBURL != "" {
		text += "  msb      MSB_SERVER_URL=" + r.MSBURL + "\n"
	}
	if r.E2BDomain != "" {
		text += "  e2b      E2B_DOMAIN=" + r.E2BDomain + "\n"
	}
	if r.E2BCA != "" {
		text += "           NODE_EXTRA_CA_CERTS=" + r.E2BCA + " SSL_CERT_FILE=" + r.E2BCA + "\n"
	}
	return text
}
