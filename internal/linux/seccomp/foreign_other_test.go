//go:build !amd64

package seccomp_test

import "errors"

func foreignCode([]string) error { return errors.New("not on this architecture") }
