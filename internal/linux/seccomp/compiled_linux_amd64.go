package seccomp

import _ "embed"

// compiledSandbox is written by the tests of this package, with -update.
//
//go:embed sandbox_amd64.bpf
var compiledSandbox string
