package duckdb

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

// PutPath is where the executable and files are in sandboxes that have them neither
// mounted nor in their image: not in the workspace, which is archived.
const PutPath = "/tmp/.cove-put"

// putTime bounds how long it takes to bring something into a sandbox.
const putTime = 5 * time.Minute

// digestOf reads the executable.
func digestOf(tool cove.Tool) (string, error) {
	f, err := openTool(tool)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", lost(tool, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func openTool(tool cove.Tool) (*os.File, error) {
	root, err := os.OpenRoot(tool.Dir)
	if err != nil {
		return nil, lost(tool, err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(tool.Name)
	if err != nil {
		return nil, lost(tool, err)
	}
	return f, nil
}

func lost(tool cove.Tool, err error) error {
	return typed(cove.Wrap(cove.Unavailable, err, "the executable of DuckDB cannot be read from %s", filepath.Join(tool.Dir, tool.Name)).
		Remedy("restart cove, which writes it again"), cove.RunUnavailable)
}

// Put returns where the executable is in a sandbox that does not have it mounted: in
// its image, where one put it at [cove.ToolPath], where it was put before, or where it
// is put now, compressed on its way. It counts as the same only by its digest. Whoever
// runs programs in the sandbox could replace it, and lie to themselves.
func (d *Driver) Put(ctx context.Context, in cove.Starter) (string, error) {
	digest, err := d.digest()
	if err != nil {
		return "", err
	}
	const enough = 16 // digits, to tell builds apart
	own := path.Join(PutPath, d.tool.Name+"-"+digest[:enough])
	places := []string{path.Join(cove.ToolPath, d.tool.Name), own}
	out, err := pour(ctx, in, nil, findScript, append([]string{digest}, places...)...)
	if err != nil {
		return "", err
	}
	for _, p := range places {
		if out == p {
			return p, nil
		}
	}
	f, err := d.source()
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if out, err = pour(ctx, in, &load{f, d.packed != nil}, putScript, own, "0555", digest); err != nil {
		return "", err
	}
	if out != "" {
		return "", unwritten(own, out)
	}
	return own, nil
}

// source opens what is put: the packed copy, if there is one.
func (d *Driver) source() (io.ReadCloser, error) {
	if d.packed == nil {
		return openTool(d.tool)
	}
	f, err := d.packed()
	if err != nil {
		return nil, lost(d.tool, err)
	}
	return f, nil
}

// Send brings a file into a sandbox, compressed on its way, which only its reader
// knows. It appears whole or not at all, and may be read only. A name below PutPath is
// good.
func Send(ctx context.Context, in cove.Starter, r io.Reader, name string) error {
	out, err := pour(ctx, in, &load{r: r}, putScript, name, "0444", "")
	if err == nil && out != "" {
		err = unwritten(name, out)
	}
	return err
}

// unwritten is the error for what did not arrive.
func unwritten(name, why string) error {
	return typed(cove.Errorf(cove.Unavailable, "%s cannot be written in the sandbox: %s", name, clean(why)).
		Remedy("use a provider with volumes, or a flavor with more room"), cove.RunUnavailable)
}

// The programs that find and write files inside. They end with 0 and say on their
// output what is to be known; sh, sha256sum and gzip are all they need.
const (
	findScript = `want=$1; shift
for f; do
	if [ -x "$f" ] && sum=$(sha256sum <"$f") && [ "${sum%% *}" = "$want" ]; then printf %s "$f"; exit 0; fi
done 2>/dev/null
exit 0`
	putScript = `umask 022
dir=${1%/*}
new=$dir/.new.$$
trap 'rm -f "$new"' EXIT
if said=$( { mkdir -p "$dir" && gzip -dc >"$new" && chmod "$2" "$new"; } 2>&1 ); then :; else printf %s "${said:-it ended early}"; exit 0; fi
if [ -n "$3" ]; then
	sum=$(sha256sum <"$new")
	if [ "${sum%% *}" != "$3" ]; then printf 'it did not arrive as it was sent'; exit 0; fi
fi
said=$(mv -f "$new" "$1" 2>&1) || printf %s "${said:-it cannot be moved}"
exit 0`
)

// load is what goes into a sandbox.
type load struct {
	r      io.Reader
	packed bool // it is compressed already
}

// pour runs a program of ours in a sandbox, with a load, compressed, as its input, and
// returns what it says.
func pour(ctx context.Context, in cove.Starter, l *load, script string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, putTime, typed(
		cove.Errorf(cove.Timeout, "bringing DuckDB and its files into the sandbox took longer than %s", putTime).
			Remedy("use an image that has the executable at %s, or a provider with volumes", cove.ToolPath), cove.RunUnavailable))
	defer cancel()
	var stdin io.Reader
	var packed *io.PipeReader
	packing := make(chan error, 1)
	packing <- nil
	if l != nil {
		<-packing
		packed = pack(*l, packing)
		stdin = packed
	}
	said, moaned := talk.NewHead(maxSaid), talk.NewHead(maxSaid)
	p, err := in.Start(ctx, cove.Command{
		Argv: append([]string{"sh", "-c", script, "sh"}, args...), Dir: "/",
		Env: map[string]string{"LC_ALL": "C"}, Stdin: stdin, Stdout: said, Stderr: moaned,
	})
	var result cove.Result
	if err == nil {
		if result, err = p.Wait(ctx); err != nil {
			_ = p.Kill(context.WithoutCancel(ctx)) // it goes with its sandbox, if not now
		}
	}
	if packed != nil {
		_ = packed.CloseWithError(io.ErrClosedPipe)
	}
	if read := <-packing; read != nil && err == nil {
		return "", read
	}
	switch {
	case err != nil:
		return "", late(ctx, err)
	case result.Outcome != cove.Exited || result.ExitCode != 0:
		return "", typed(cove.Errorf(cove.Unavailable, "the sandbox cannot take DuckDB's files: sh ended there (%s, exit code %d) and said: %s",
			result.Outcome, result.ExitCode, cmp.Or(clean(moaned.String()), "nothing")).
			Remedy("use an image with sh, sha256sum and gzip"), cove.RunUnavailable)
	}
	return strings.TrimSpace(said.String()), nil
}

// pack compresses a load, and tells when it is done with it: with an error if its
// reader had one.
func pack(l load, done chan<- error) *io.PipeReader {
	out, w := io.Pipe()
	go func() {
		watched := &faulty{r: l.r}
		var err error
		if l.packed {
			_, err = io.Copy(w, watched)
		} else {
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a good one
			if _, err = io.Copy(z, watched); err == nil {
				err = z.Close()
			}
		}
		_ = w.CloseWithError(err)
		if watched.err != nil {
			done <- typed(cove.Wrap(cove.Unavailable, watched.err, "a file cannot be read"), cove.RunInvalidInput)
			return
		}
		done <- nil
	}()
	return out
}

// faulty remembers that its reader failed.
type faulty struct {
	r   io.Reader
	err error
}

// Read implements [io.Reader].
func (f *faulty) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}
