//go:build linux

package main

import (
	"os"
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	bootfilter "gvisor.dev/gvisor/runsc/boot/filter"
	goferfilter "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

// programs are system call filters that were compiled when this was built:
// scripts/gvisor.sh has the file that sets it written by gen. A plain go build
// has none.
var programs struct {
	boot, gofer []precompiledseccomp.Program
}

// gVisor's own build compiles its filters ahead and keeps them here; its Go
// module does so at every start of a sandbox, and offers no way to put them in.

//go:linkname bootPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var bootPrograms map[string]precompiledseccomp.Program

//go:linkname goferPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferPrograms map[string]precompiledseccomp.Program

// injectPrograms saves a sandbox the time to compile its filters. A program is
// found by the options it was compiled for, so what is missing here costs that
// time and never a rule.
func injectPrograms() {
	switch os.Args[0] {
	case "runsc-sandbox":
		bootfilter.GetPrecompiled("") // it makes the map, once
		for _, p := range programs.boot {
			bootPrograms[p.Name] = p
		}
	case "runsc-gofer":
		goferfilter.GetPrecompiled("")
		for _, p := range programs.gofer {
			goferPrograms[p.Name] = p
		}
	}
}
