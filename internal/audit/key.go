package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
)

// keys are what is derived from a node's key. The id tells one from another and
// gives nothing away.
type keys struct {
	chain, anchor, digest []byte
	id                    string
}

const keyIDLen = 16

func derive(key []byte) keys {
	use := func(purpose string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte("cove journal v1 " + purpose))
		return m.Sum(nil)
	}
	return keys{
		chain: use("chain"), anchor: use("anchor"), digest: use("digest"),
		id: hex.EncodeToString(use("id"))[:keyIDLen],
	}
}

// readKey returns an error that is fs.ErrNotExist where there is no key.
func readKey(path string) (keys, error) {
	info, err := os.Stat(path)
	if err != nil {
		return keys{}, fmt.Errorf("key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return keys{}, cove.Errorf(cove.Unavailable, "the journal's key %s can be read by others (mode %04o)", path, info.Mode().Perm()).
			Remedy("chmod 600 %s", path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator's own path
	if err != nil {
		return keys{}, fmt.Errorf("key: %w", err)
	}
	text = bytes.TrimSpace(text)
	key := make([]byte, sha256.Size)
	if len(text) != hex.EncodedLen(len(key)) {
		return keys{}, damagedKey(path, errors.New("wrong length"))
	}
	if _, err := hex.Decode(key, text); err != nil {
		return keys{}, damagedKey(path, err)
	}
	return derive(key), nil
}

func damagedKey(path string, cause error) error {
	return cove.Wrap(cove.Unavailable, cause, "the journal's key %s is not %d hex digits", path, hex.EncodedLen(sha256.Size)).
		Remedy("restore %s from a backup", path)
}

func createKey(path string) (keys, error) {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails since Go 1.24
	if err := replaceFile(path, []byte(hex.EncodeToString(key)+"\n")); err != nil {
		return keys{}, fmt.Errorf("key: %w", err)
	}
	return derive(key), nil
}

// replaceFile puts a file in its place whole and on the disk, or not at all.
func replaceFile(path string, data []byte) error {
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
