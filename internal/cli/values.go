//go:build !lean

package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
)

// imageSuffixes are the images that can be written to files.
var imageSuffixes = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/svg+xml": ".svg"}

// maxImages bounds the files of one directory.
const maxImages = 10_000

// saveImages writes the images among values to files with new names, and returns
// the names by the number of the value.
func saveImages(dir string, values []cove.Rich) (map[int][]string, error) {
	saved := map[int][]string{}
	if dir == "" {
		return saved, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // as the user's umask has it
		return nil, cove.Wrap(cove.Unavailable, err, "--save: %s cannot be made", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "--save: %s cannot be opened", dir)
	}
	defer func() { _ = root.Close() }() // files have been closed with their errors
	for i, v := range values {
		for _, kind := range slices.Sorted(maps.Keys(v)) {
			suffix, ok := imageSuffixes[kind]
			if !ok {
				continue
			}
			data := []byte(v[kind])
			if kind != "image/svg+xml" {
				if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v[kind]), "")); err != nil {
					return nil, cove.Wrap(cove.Unavailable, err, "an image that the code showed is no base64")
				}
			}
			name, err := newFile(root, suffix, data)
			if err != nil {
				return nil, cove.Wrap(cove.Unavailable, err, "an image cannot be written to %s", dir)
			}
			saved[i] = append(saved[i], filepath.Join(dir, name))
		}
	}
	return saved, nil
}

// newFile writes a file under the first name that is free.
func newFile(root *os.Root, suffix string, data []byte) (string, error) {
	for n := 1; n <= maxImages; n++ {
		name := fmt.Sprintf("image-%d%s", n, suffix)
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return name, errors.Join(err, f.Close())
	}
	return "", fs.ErrExist
}

// showValues prints what the code showed beside what it printed, escaped but
// for its line breaks.
func (a *app) showValues(res *cove.CodeResult, saved map[int][]string) error {
	for i, v := range res.Results {
		text := agenttool.Value(v)
		for _, name := range saved[i] {
			text = strings.TrimRight(text, "\n") + "\n" + name
		}
		if _, err := io.WriteString(a.sys.Stdout, escapeLines(strings.TrimLeft(text, "\n"))+"\n"); err != nil {
			return err
		}
	}
	if res.Error == nil {
		return nil
	}
	text := res.Error.Traceback
	if text == "" {
		text = res.Error.Name + ": " + res.Error.Value
	}
	_, err := io.WriteString(a.sys.Stderr, escapeLines(strings.TrimRight(text, "\n"))+"\n")
	return err
}
