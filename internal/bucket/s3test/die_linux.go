package s3test

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel end a server whose test was killed. The kernel ends it with
// the thread that started it.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
