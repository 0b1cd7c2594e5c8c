package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/cove-sandbox/cove/internal/config"
)

// version is set by the linker: see scripts/build.sh.
var version = "dev"

// System is the process as commands see it.
type System struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    func(name string) (string, bool)
}

// Main runs the command line of this process and returns its exit code. It
// ends early, and cleans up, on SIGINT, SIGTERM and SIGHUP; a second one ends it
// at once.
func Main() int { return main(Run) }

// main runs the command line once signals are heard.
func main(run func(context.Context, System) int) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listen(ctx, stop)
	return run(ctx, System{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: config.Environment,
	})
}

// listen makes signals end ctx with stop.
func listen(ctx context.Context, stop func()) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup wants it
		signals = append(signals, syscall.SIGHUP)
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, signals...)
	// A closed pipe is an error of the write and not the end of the process,
	// which has a sandbox to remove first. Whatever is started from here sets its
	// own signals.
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		select {
		case <-heard:
			signal.Stop(heard) // the next one ends the process
			stop()
		case <-ctx.Done():
		}
	}()
}

// terminal returns the descriptor of a stream that is one.
func terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	fd := int(f.Fd())
	return fd, term.IsTerminal(fd)
}
