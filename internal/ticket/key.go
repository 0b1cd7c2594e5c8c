package ticket

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

const keyLen = 32

// Open returns the book whose key is in the file at path, and the browsers that
// signed out in the file at out. The first call writes both, readable by their
// owner alone. A key that others can read, or that is none, is refused.
func Open(path, out string) (*Book, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, keyLen)
		_, _ = rand.Read(key) // never fails since Go 1.24
		err = writeKey(path, key)
	}
	if err != nil {
		return nil, err
	}
	b := New(key)
	if b.left, err = openLeft(out); err != nil {
		return nil, err
	}
	b.console = sum(key, "cove console", b.left.salt)
	return b, nil
}

// readKey reads the file of the key. Its error says nothing of the content.
func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, cove.Errorf(cove.Invalid, "the key file %s is not a plain file; remove it and a new key is made", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, cove.Errorf(cove.Invalid, "the key file %s can be read by others; remove it and a new key is made, which ends every link", path)
	}
	f, err := os.Open(path) //nolint:gosec // the operator's own setting
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, 2*keyLen+2))
	if err != nil {
		return nil, unreadable(path, err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyLen {
		return nil, cove.Errorf(cove.Invalid, "the key file %s holds no key; remove it and a new one is made, which ends every link", path)
	}
	return key, nil
}

func unreadable(path string, err error) error {
	return cove.Wrap(cove.Unavailable, err, "the key file %s cannot be read", path).Remedy("check who owns it and its directory")
}

// writeKey makes the file appear whole or not at all.
func writeKey(path string, key []byte) (err error) {
	defer func() {
		if err != nil {
			err = cove.Wrap(cove.Unavailable, err, "the key file %s cannot be written; check that its directory is yours and has room", path)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), ".link-*") // CreateTemp gives mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone already where all went well
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return os.Rename(f.Name(), path)
}
