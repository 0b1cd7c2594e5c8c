package duckexe

import (
	"bytes"
	"io"
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/packed"
)

// imageID is a hash of the executable, which the build writes here.
var imageID string

// Installed returns the executable, in a directory below dir that is made by the
// first call of a build; those of other builds go away. Only the caller's user may
// write to dir. A build without DuckDB inside is Unsupported.
func Installed(dir string) (cove.Tool, error) {
	program := packed.Program{Name: name, Title: "DuckDB", Image: image, ID: imageID, Alone: true}
	if !program.Embedded() {
		return cove.Tool{}, missing()
	}
	path, err := program.Installed(dir)
	if err != nil {
		return cove.Tool{}, err
	}
	return cove.Tool{Name: name, ID: imageID, Dir: filepath.Dir(path)}, nil
}

// Packed opens the executable as this build has it inside: compressed by gzip.
func Packed() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(image)), nil }
