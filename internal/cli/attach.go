//go:build !lean

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cove-sandbox/cove"
)

// loginShell is what attach starts where nothing else is named: bash, or sh
// where there is none.
const loginShell = `if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi`

func (a *app) attachCommand() *cobra.Command {
	var pid string
	cmd := &cobra.Command{
		Use:   "attach [flags] ID [--] [PROGRAM [ARGUMENT...]]",
		Short: "Work in a sandbox at a terminal",
		Long: `Starts a shell, or the program given, in a sandbox and connects this terminal
with it; or connects with a background program that runs already.

The program goes on when you leave with ctrl-p ctrl-q. The exit code is that of
the program, or 0 when you left it.`,
		Args: passing(arguments(1, -1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			id, argv := args[0], args[1:]
			if len(argv) > 0 && argv[0] == "--" { // flags ended at ID, so that this one was left
				argv = argv[1:]
			}
			if pid != "" && len(argv) > 0 {
				return cove.InvalidField("--pid", "names a program that runs; leave out %.80q", argv[0])
			}
			return a.withSession(cmd, id, func(ctx context.Context, p link, id cove.ID) error {
				procs := p.Processes(id)
				if pid != "" {
					info, err := program(ctx, procs, []string{pid})
					if err != nil {
						return err
					}
					return a.attach(ctx, procs, &info)
				}
				info, err := a.startShell(ctx, procs, argv)
				if err != nil {
					return err
				}
				return a.attach(ctx, procs, info)
			})
		}),
	}
	cmd.Flags().StringVar(&pid, "pid", "", "connect with the background program of this `number`")
	passFlags(cmd)
	return cmd
}

func (a *app) startShell(ctx context.Context, procs cove.Processes, argv []string) (*cove.ProcessInfo, error) {
	req := cove.ExecRequest{Argv: argv, KeepStdin: true, Env: map[string]string{}}
	if len(argv) == 0 {
		req.Line = loginShell
	}
	if word, ok := a.sys.Env("TERM"); ok {
		req.Env["TERM"] = word
	}
	if size, ok := a.window(); ok {
		req.TTY = &size
	}
	return procs.Start(ctx, req)
}

// window returns the size of the terminal that we are at, if we are at one.
func (a *app) window() (cove.WindowSize, bool) {
	for _, stream := range []any{a.sys.Stdin, a.sys.Stdout} {
		fd, ok := terminal(stream)
		if !ok {
			continue
		}
		cols, rows, err := term.GetSize(fd)
		if err != nil || cols < 1 || rows < 1 || cols > 1<<15 || rows > 1<<15 {
			return cove.WindowSize{Cols: 80, Rows: 24}, true
		}
		return cove.WindowSize{Cols: uint16(cols), Rows: uint16(rows)}, true
	}
	return cove.WindowSize{}, false
}

// errLeft is why attach ends when the user left the program.
var errLeft = errors.New("left")

// attach connects the streams with a background program until it ends or the
// user leaves it.
func (a *app) attach(ctx context.Context, procs cove.Processes, info *cove.ProcessInfo) error {
	if r := info.Result; r != nil && r.Outcome == cove.Blocked {
		return a.ended(r)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	restore, err := a.raw(info.TTY)
	if err != nil {
		return err
	}
	defer restore()
	_, atTerminal := terminal(a.sys.Stdin)
	go a.feed(ctx, procs, info.PID, atTerminal && info.TTY, cancel)
	if info.TTY {
		defer a.followSize(ctx, procs, info.PID)()
	}
	out := &relay{sys: a.sys, cancel: func() { cancel(errLeft) }}
	for chunk, err := range procs.Connect(ctx, info.PID, 0) {
		if errors.Is(context.Cause(ctx), errLeft) {
			return nil
		}
		if err != nil {
			return err
		}
		out.write(chunk)
	}
	ex, err := procs.Wait(ctx, info.PID)
	if err != nil {
		if errors.Is(context.Cause(ctx), errLeft) {
			return nil
		}
		return err
	}
	restore()
	return a.ended(ex)
}

// raw hands keys to the program instead of to this terminal. The function it
// returns undoes it and may be called twice.
func (a *app) raw(tty bool) (restore func(), err error) {
	fd, ok := terminal(a.sys.Stdin)
	if !ok || !tty {
		return func() {}, nil
	}
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the terminal cannot be switched to raw mode")
	}
	return func() { _ = term.Restore(fd, state) }, nil // there is nothing else to try
}

// feed passes input on until it ends. At a terminal ctrl-p ctrl-q leaves.
func (a *app) feed(ctx context.Context, procs cove.Processes, pid cove.PID, keys bool, leave context.CancelCauseFunc) {
	buf := make([]byte, 32<<10)
	var d detacher
	for {
		n, err := a.sys.Stdin.Read(buf)
		data, left := buf[:n], false
		if keys {
			data, left = d.scan(data)
		}
		if len(data) > 0 || err != nil {
			// A program that has closed its input or ended tells by itself.
			if procs.Input(ctx, pid, data, errors.Is(err, io.EOF)) != nil {
				return
			}
		}
		if left {
			leave(errLeft)
		}
		if left || err != nil {
			return
		}
	}
}

// detacher looks for ctrl-p ctrl-q, Docker's keys, in what is typed. A ctrl-p
// is held back until the next key.
type detacher struct{ held bool }

const (
	ctrlP = 0x10
	ctrlQ = 0x11
)

// scan returns what is to be passed on, and whether the user leaves.
func (d *detacher) scan(typed []byte) (pass []byte, left bool) {
	for _, b := range typed {
		switch {
		case d.held && b == ctrlQ:
			return pass, true
		case d.held:
			pass = append(pass, ctrlP)
			d.held = b == ctrlP
			if !d.held {
				pass = append(pass, b)
			}
		case b == ctrlP:
			d.held = true
		default:
			pass = append(pass, b)
		}
	}
	return pass, false
}

// followSize tells the program whenever the window changes, until the function
// it returns is called.
func (a *app) followSize(ctx context.Context, procs cove.Processes, pid cove.PID) func() {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range changed {
			if size, ok := a.window(); ok {
				_ = procs.Resize(ctx, pid, size) // the next change tries again
			}
		}
	}()
	changed <- syscall.SIGWINCH
	return func() {
		signal.Stop(changed)
		close(changed)
		<-done
	}
}
