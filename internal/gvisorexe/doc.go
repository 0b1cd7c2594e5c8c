// Package gvisorexe has gVisor inside: cmd/cove-gvisor, which make build compiles
// and puts into this package, compressed. It is kept as a file that is written once
// for each build, since gVisor executes itself again and again.
//
// It must not run the executable, nor decide where it belongs, and it links
// nothing of gVisor.
package gvisorexe
