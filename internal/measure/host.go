package measure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// program is the work: what remains of it is the cost of starting something.
const program = "true"

// Host runs `true` on the host, as Go's os/exec does it.
func Host() Contender {
	return Contender{Name: "true on the host, os/exec", Run: func(ctx context.Context) error {
		return exec.CommandContext(ctx, program).Run()
	}}
}

// Command runs a command line on the host, with the environment given and no
// other. It fails when the command does, with what the command said.
func Command(name string, env []string, argv ...string) Contender {
	var said *os.File // a file and no pipe, which would take time to read
	return Contender{
		Name: name,
		Before: func(context.Context) (err error) {
			if said, err = os.CreateTemp("", "cove-bench-*"); err != nil {
				return err
			}
			return os.Remove(said.Name())
		},
		Run: func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the caller names what is compared
			cmd.Env = append([]string{}, env...)                  // nil would be ours
			cmd.Stderr = said
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %w: %s", argv[0], err, head(said))
			}
			return nil
		},
		After: func(context.Context) error { return said.Close() },
	}
}

// head returns how a file begins.
func head(f *os.File) []byte {
	text := make([]byte, 400)
	n, _ := f.ReadAt(text, 0) // a file that says nothing is empty
	return bytes.TrimSpace(text[:n])
}
