package cove_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestDiskFault(t *testing.T) {
	for _, c := range []struct {
		err   error
		code  cove.Code
		words string
	}{
		{syscall.ENOSPC, cove.Exhausted, "is full"},
		{syscall.EDQUOT, cove.Exhausted, "is full"},
		{syscall.EROFS, cove.Unavailable, "read-only"},
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.EIO}, cove.Unavailable, "healthy"},
		{fs.ErrPermission, "", ""},
		{errors.New("else"), "", ""},
		{nil, "", ""},
	} {
		code, words, ok := cove.DiskFault(c.err)
		if code != c.code || !strings.Contains(words, c.words) || ok != (c.code != "") {
			t.Errorf("%v is %q, %q, %v", c.err, code, words, ok)
		}
	}
}
