//go:build linux

package guest

import (
	"context"
	"io"
	"io/fs"
	"iter"

	"github.com/cove-sandbox/cove"
)

// noFiles is the file tree of a sandbox in which nobody could look at it.
type noFiles struct{}

// none is a list that cannot be read.
func none[T any](yield func(T, error) bool) {
	var zero T
	yield(zero, errSolo)
}

func (noFiles) Stat(context.Context, string) (cove.FileInfo, error) {
	return cove.FileInfo{}, errSolo
}

func (noFiles) Read(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, errSolo
}

func (noFiles) Write(context.Context, string, io.Reader, fs.FileMode) error { return errSolo }

func (noFiles) List(context.Context, string, int) iter.Seq2[cove.FileInfo, error] {
	return none[cove.FileInfo]
}

func (noFiles) Mkdir(context.Context, string) error                    { return errSolo }
func (noFiles) Move(context.Context, string, string) error             { return errSolo }
func (noFiles) Remove(context.Context, string) error                   { return errSolo }
func (noFiles) Tag(context.Context, string, map[string]string) error   { return errSolo }
func (noFiles) Archive(context.Context, string) (io.ReadCloser, error) { return nil, errSolo }
func (noFiles) Unpack(context.Context, string, io.Reader) error        { return errSolo }

func (noFiles) Watch(context.Context, string) iter.Seq2[cove.Change, error] {
	return none[cove.Change]
}
