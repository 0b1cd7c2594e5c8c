package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bootstrap makes sure that the owner of this machine has a key: the secret in
// the file at path opens an admin key of the default tenant in store. The first
// call writes the file, readable by its owner alone, and reports created. A
// file that is there is used as it is; where its key is not in the store, it is
// put there. A file that others can read, or that holds no secret, is refused.
func Bootstrap(ctx context.Context, store cove.KeyStore, path string) (created bool, err error) {
	secret, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret, created = cove.NewSecret(), true
		err = writeSecret(path, secret)
	}
	if err != nil {
		return false, err
	}
	hash := cove.HashSecret(secret)
	_, err = store.KeyByHash(ctx, hash)
	if !errors.Is(err, cove.NotFound) {
		return created, err
	}
	return created, store.PutKey(ctx, &cove.Key{
		ID: cove.NewID(), Name: "admin", Tenant: cove.DefaultTenant, Hash: hash, Scopes: []cove.Scope{cove.ScopeAll}, CreatedAt: time.Now().UTC(),
	})
}

// readSecret reads the file of the key. Its error says nothing of the content.
func readSecret(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the key file %s cannot be read", path)
	}
	if !info.Mode().IsRegular() {
		return "", cove.Errorf(cove.Invalid, "the key file %s is not a plain file; remove it and a new key is made", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", cove.Errorf(cove.Invalid, "the key file %s can be read by others; run chmod 600 on it, or remove it and a new key is made", path)
	}
	f, err := os.Open(path) //nolint:gosec // the operator's own setting
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the key file %s cannot be read", path)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxSecretLen+1))
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the key file %s cannot be read", path)
	}
	secret := strings.TrimSpace(string(data))
	// A short word could be guessed; only what we make ourselves is long enough.
	if len(secret) != len(cove.NewSecret()) || !strings.HasPrefix(secret, "cove_") {
		return "", cove.Errorf(cove.Invalid, "the key file %s holds no key; remove it and a new one is made", path)
	}
	return secret, nil
}

// writeSecret makes the file appear whole or not at all.
func writeSecret(path, secret string) (err error) {
	dir := filepath.Dir(path)
	defer func() {
		if err != nil {
			err = cove.Wrap(cove.Unavailable, err, "the key file %s cannot be written; check that its directory is yours and has room", path)
		}
	}()
	f, err := os.CreateTemp(dir, ".key-*") // CreateTemp gives mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone already where all went well
	_, err = f.WriteString(secret + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return os.Rename(f.Name(), path)
}
