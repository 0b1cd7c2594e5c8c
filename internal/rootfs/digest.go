package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// sum is what a walk over a tree found.
type sum struct {
	digest string
	size   cove.Bytes
	files  int64
}

// Digest reads a whole tree. Owners and times do not count.
func Digest(ctx context.Context, root *os.Root) (digest string, size cove.Bytes, files int64, err error) {
	s, err := digestOf(ctx, root)
	return s.digest, s.size, s.files, err
}

func digestOf(ctx context.Context, root *os.Root) (sum, error) {
	var s sum
	h := sha256.New()
	err := walk(ctx, root, func(name string, info fs.FileInfo) error {
		content := ""
		var err error
		switch mode := info.Mode(); {
		case mode.IsDir():
		case mode&fs.ModeSymlink != 0:
			content, err = root.Readlink(name)
		case mode.IsRegular():
			s.files++
			s.size += cove.Bytes(info.Size())
			content, err = contentOf(root, name)
		default:
			err = fmt.Errorf("%q is neither a directory nor a file nor a link", name)
		}
		if err == nil {
			line(h, name, info, content)
		}
		return err
	})
	s.digest = hex.EncodeToString(h.Sum(nil))
	return s, err
}

// line adds one entry; names are quoted, so that no name looks like two entries.
func line(h hash.Hash, name string, info fs.FileInfo, rest string) {
	size := info.Size()
	if !info.Mode().IsRegular() {
		size = 0 // of directories it depends on the file system
	}
	_, _ = fmt.Fprintf(h, "%s %q %d %q\n", info.Mode(), name, size, rest) // a hash takes everything
}

func contentOf(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sealOf is over what the file system says of each file. Whoever changes a file
// changes the time of its change, which only the kernel sets.
func sealOf(ctx context.Context, root *os.Root) (string, error) {
	h := sha256.New()
	err := walk(ctx, root, func(name string, info fs.FileInfo) error {
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%q has no numbers", name)
		}
		line(h, name, info, fmt.Sprint(st.Ino, st.Mtim, st.Ctim))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// walk visits everything below the top of a tree, in the order of names within
// each directory, and follows no link.
func walk(ctx context.Context, root *os.Root, visit func(name string, info fs.FileInfo) error) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return visit(name, info)
	})
}
