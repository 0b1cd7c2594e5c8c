package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// Options bounds an import and tells how it goes.
type Options struct {
	Bounds rootfs.Bounds // the zero value is the default
	// Tell, if set, is called with the number of the layer, how many there are, and
	// what was written so far.
	Tell func(layer, layers int, written cove.Bytes)
}

// Info is what an image says about itself that a template needs.
type Info struct {
	Env     map[string]string
	Path    []string
	Layers  int
	LeftOut int64 // devices and the like
}

// header is what one entry of a tar costs beside its content, with long names.
const header = 4096

// Unpack puts an image, which is a file that docker save wrote, or an OCI layout as
// a directory or in a tar, into an empty tree. On error the tree is not to be used.
func Unpack(ctx context.Context, root *os.Root, file string, o Options) (info Info, err error) {
	if o.Bounds == (rootfs.Bounds{}) {
		o.Bounds = rootfs.DefaultBounds
	}
	s, err := openSource(file)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	d, err := describe(s)
	if err != nil {
		return info, err
	}
	u := rootfs.NewUnpacker(root, o.Bounds)
	room := int64(o.Bounds.Size) + o.Bounds.Entries*header
	for i, l := range d.layers {
		if o.Tell != nil {
			u.Tell = func(written cove.Bytes) { o.Tell(i+1, len(d.layers), written) }
		}
		if room, err = unpackLayer(ctx, u, s, l, room); err != nil {
			return info, err
		}
	}
	if err := rootfs.Tidy(root); err != nil {
		return info, err
	}
	info.Env, info.Path = environment(d.config.Config.Env)
	info.Layers, info.LeftOut = len(d.layers), u.LeftOut()
	return info, nil
}

// unpackLayer unpacks one layer and compares its digests. It returns how much
// more may come out of layers.
func unpackLayer(ctx context.Context, u *rootfs.Unpacker, s source, l layer, room int64) (int64, error) {
	f, err := s.open(l.name)
	if err != nil {
		return 0, missing(l.name, err)
	}
	defer func() { _ = f.Close() }()
	raw := &counted{in: f, sum: sha256.New(), room: room}
	plain, err := decompress(raw)
	if err != nil {
		return 0, err
	}
	content := &counted{in: plain, sum: sha256.New(), room: room}
	if err := u.Layer(ctx, content); err != nil {
		return 0, err
	}
	// What stands behind the last entry belongs to the digests too.
	for _, r := range []io.Reader{content, raw} {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return 0, damaged(err)
		}
	}
	if content.digest() != l.diff || l.blob != "" && raw.digest() != l.blob || l.size >= 0 && raw.n != l.size {
		return 0, different(l.name)
	}
	return content.room, nil
}

func damaged(err error) error {
	if _, ours := errors.AsType[*cove.Error](err); ours {
		return err
	}
	return cove.Wrap(cove.Invalid, err, "a layer of the image is damaged or cut off").Remedy("fetch it again")
}

// decompress looks at the first bytes: what an image says about its layers is
// wrong now and then.
func decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, damaged(err)
		}
		return z, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, cove.Errorf(cove.Unsupported, "a layer of the image is compressed with zstd, which this build cannot read").Remedy("write it with gzip or uncompressed, as docker save does")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, damaged(err)
	}
	return b, nil
}

// counted reads, sums up and stops at a bound.
type counted struct {
	in   io.Reader
	sum  hash.Hash
	n    int64
	room int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	if c.room -= int64(n); c.room < 0 {
		return n, cove.Errorf(cove.Exhausted, "the image is larger than a template may be")
	}
	return n, err
}

func (c *counted) digest() string { return "sha256:" + hex.EncodeToString(c.sum.Sum(nil)) }

// Bounds of an environment.
const (
	mostVariables = 256
	mostValue     = 16 << 10
	mostSearched  = 32
)

var goodVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// environment is what an image wants programs to find: its variables, but those
// that a sandbox sets itself, and where its programs are.
func environment(list []string) (env map[string]string, search []string) {
	own := map[string]bool{"HOME": true, "HOSTNAME": true, "LOGNAME": true, "PWD": true, "SHELL": true, "TERM": true, "USER": true}
	env = map[string]string{}
	for _, text := range list {
		name, value, _ := strings.Cut(text, "=")
		switch {
		case len(value) > mostValue || strings.ContainsRune(value, 0) || !goodVariable.MatchString(name) || own[name]:
		case name == "PATH":
			search = nil
			for dir := range strings.SplitSeq(value, ":") {
				if path.IsAbs(dir) && len(search) < mostSearched {
					search = append(search, path.Clean(dir))
				}
			}
		case len(env) < mostVariables:
			env[name] = value
		}
	}
	return env, search
}
