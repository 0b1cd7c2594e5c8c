//go:build linux

package main

import (
	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
)

// commands is runsc and does not return. The table is shorter than that of
// gVisor's own main package, which carries 47 MB that only serve checkpoints in
// Google Cloud Storage.
func commands() {
	injectPrograms()
	const internal = "internal"
	cli.Run(nil, map[util.SubCommand]string{
		new(cmd.Checkpoint):   "",
		new(cmd.Create):       "",
		new(cmd.Debug):        "",
		new(cmd.Delete):       "",
		new(cmd.Do):           "",
		new(cmd.Events):       "",
		new(cmd.Exec):         "",
		new(cmd.FSCheckpoint): "",
		new(cmd.Kill):         "",
		new(cmd.List):         "",
		new(cmd.PS):           "",
		new(cmd.Pause):        "",
		new(cmd.Restore):      "",
		new(cmd.Resume):       "",
		new(cmd.Run):          "",
		new(cmd.Spec):         "",
		new(cmd.Start):        "",
		new(cmd.State):        "",
		new(cmd.Tar):          "",
		new(cmd.Update):       "",
		new(cmd.Usage):        "",
		new(cmd.Wait):         "",

		new(cmd.Gofer):        internal,
		new(sentrycmd.Boot):   internal,
		new(sentrycmd.Umount): internal,
	}, []subcommands.Command{new(cmd.Platforms), new(cmd.Syscalls)})
}
