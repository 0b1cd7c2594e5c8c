//go:build !lean

package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
)

func (a *app) cpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy files into a sandbox or out of it",
		Long: `Copies a file or a directory. One side is ID:path, inside a sandbox; the other is
a path on this machine, or - for standard input or output.

A directory goes with all that is in it, into the target where that is a
directory and as the target where it does not exist. With - a file is its bytes
and a directory is a tar stream.`,
		Example: `  cove sandbox cp data.csv 01m1qdyb7y3wn0x7gdkb2wq0qe:data.csv
  cove sandbox cp 01m1qdyb7y3wn0x7gdkb2wq0qe:out ./results
  cove sandbox cp 01m1qdyb7y3wn0x7gdkb2wq0qe:out - | tar t`,
		Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to := place(args[0]), place(args[1])
			switch {
			case from.id != "" && to.id != "":
				return cove.InvalidField("TARGET", "is in a sandbox, and so is the source; copy to this machine first")
			case from.id == "" && to.id == "":
				return cove.InvalidField("SOURCE", "is on this machine, and so is the target; write one of them as ID:path")
			case from.id != "":
				return a.withSession(cmd, string(from.id), func(ctx context.Context, p link, id cove.ID) error {
					return a.copyOut(ctx, p.Files(id), from.path, to.path)
				})
			}
			return a.withSession(cmd, string(to.id), func(ctx context.Context, p link, id cove.ID) error {
				return a.copyIn(ctx, p.Files(id), from.path, to.path)
			})
		},
	}
}

// end is one side of a copy.
type end struct {
	id   cove.ID // "" on this machine
	path string
}

func place(text string) end {
	if id, inside, ok := strings.Cut(text, ":"); ok && cove.ID(id).Valid() {
		if inside == "" {
			inside = cove.WorkspacePath
		}
		return end{id: cove.ID(id), path: inside}
	}
	return end{path: text}
}

// copyIn copies a path of this machine to name inside.
func (a *app) copyIn(ctx context.Context, files cove.Files, source, name string) error {
	into, err := isDir(ctx, files, name)
	if err != nil {
		return err
	}
	if source == "-" {
		if into {
			return files.Unpack(ctx, name, a.sys.Stdin)
		}
		return files.Write(ctx, name, a.sys.Stdin, 0o644)
	}
	info, err := os.Stat(source)
	if err != nil {
		return localError(source, err)
	}
	if into || strings.HasSuffix(name, "/") {
		name = path.Join(name, filepath.Base(source))
	}
	if info.IsDir() {
		return copyDirIn(ctx, files, source, name)
	}
	f, err := os.Open(source) //nolint:gosec // the user names the file to copy
	if err != nil {
		return localError(source, err)
	}
	defer func() { _ = f.Close() }()
	return files.Write(ctx, name, f, info.Mode().Perm())
}

func copyDirIn(ctx context.Context, files cove.Files, source, name string) error {
	if err := files.Mkdir(ctx, name); err != nil {
		return err
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := pack(ctx, source, w)
		_ = w.CloseWithError(err) // always nil
		done <- err
	}()
	err := files.Unpack(ctx, name, r)
	_ = r.CloseWithError(errors.New("the other side stopped reading")) // always nil
	if packed := <-done; err == nil || packed != nil && cove.CodeOf(packed) == cove.Invalid {
		err = packed
	}
	return err
}

// isDir reports whether name is a directory inside; a missing one is not.
func isDir(ctx context.Context, files cove.Files, name string) (bool, error) {
	info, err := files.Stat(ctx, name)
	switch {
	case errors.Is(err, cove.NotFound) && cove.ReasonOf(err) == "":
		return false, nil
	case err != nil:
		return false, err
	}
	return info.Mode.IsDir(), nil
}

// copyOut copies name from inside to a path of this machine.
func (a *app) copyOut(ctx context.Context, files cove.Files, name, target string) error {
	info, err := files.Stat(ctx, name)
	if err != nil {
		return err
	}
	if info.Mode.IsDir() {
		return a.copyDirOut(ctx, files, name, target)
	}
	r, err := files.Read(ctx, name, 0, 0)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if target == "-" {
		_, err = io.Copy(a.sys.Stdout, r)
		return err
	}
	return writeLocal(into(target, path.Base(name)), r, info.Mode.Perm())
}

func (a *app) copyDirOut(ctx context.Context, files cove.Files, name, target string) error {
	r, err := files.Archive(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if target == "-" {
		_, err = io.Copy(a.sys.Stdout, r)
		return err
	}
	target = into(target, path.Base(path.Clean("/"+name)))
	if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // as cp makes them; the umask narrows it
		return localError(target, err)
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return localError(target, err)
	}
	defer func() { _ = root.Close() }()
	return a.unpack(root, r)
}

// into returns the name of what is copied to target: inside it where it is a
// directory.
func into(target, base string) string {
	if info, err := os.Stat(target); err == nil && info.IsDir() || strings.HasSuffix(target, "/") {
		return filepath.Join(target, base)
	}
	return target
}

// writeLocal makes a file appear whole or not at all.
func writeLocal(target string, r io.Reader, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(target), ".cove-*")
	if err != nil {
		return localError(target, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that matters is said
		}
	}()
	_, err = io.Copy(f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		if _, ours := errors.AsType[*cove.Error](err); ours {
			return err
		}
		return localError(target, err)
	}
	if err := os.Chmod(f.Name(), mode&0o755|0o200); err != nil {
		return localError(target, err)
	}
	if err := os.Rename(f.Name(), target); err != nil {
		return localError(target, err)
	}
	return nil
}

// localError is about a path of this machine.
func localError(name string, err error) error {
	reason := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		reason = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		reason = le.Err
	}
	code := cove.Unavailable
	if errors.Is(err, fs.ErrNotExist) {
		code = cove.NotFound
	}
	return cove.Errorf(code, "%s on this machine: %s", name, reason)
}
