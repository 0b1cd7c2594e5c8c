//go:build !linux

package audit

import (
	"errors"
	"os"

	"github.com/cove-sandbox/cove"
)

func preallocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

func freeBytes(string) (cove.Bytes, error) { return 0, errors.ErrUnsupported }
