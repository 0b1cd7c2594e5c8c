package s3test

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel end a server whose test was killed.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
