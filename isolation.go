package cove

import "slices"

// Boundary is what stands between a sandbox and the host.
type Boundary string

// The boundaries, weakest first.
const (
	BoundaryNone       Boundary = "none"        // nothing real
	BoundaryNamespaces Boundary = "namespaces"  // the host's kernel, fenced
	BoundaryUserKernel Boundary = "user_kernel" // a kernel of its own in user space
	BoundaryMicroVM    Boundary = "microvm"     // hardware virtualization
	BoundaryRemote     Boundary = "remote"      // another machine
)

// Boundaries returns every boundary, weakest first.
func Boundaries() []Boundary {
	return []Boundary{BoundaryNone, BoundaryNamespaces, BoundaryUserKernel, BoundaryMicroVM, BoundaryRemote}
}

// AtLeast reports whether b is as strong as floor. An unknown boundary is
// weaker than all, and an unknown floor is met by none.
func (b Boundary) AtLeast(floor Boundary) bool {
	f := slices.Index(Boundaries(), floor)
	return f >= 0 && slices.Index(Boundaries(), b) >= f
}

// Enforcement says how far a limit holds.
type Enforcement string

// How far a limit holds.
const (
	Hard   Enforcement = "hard" // the kernel or the engine refuses
	Soft   Enforcement = "soft" // noticed and acted upon, late
	Absent Enforcement = "none" // nobody looks
)

// Limit names one thing that a sandbox can be kept from using.
type Limit string

// The limits of a sandbox, as they are named in reports and messages.
const (
	LimitNetwork Limit = "network"
	LimitMemory  Limit = "memory"
	LimitCPU     Limit = "cpu"
	LimitPIDs    Limit = "pids"
	LimitDisk    Limit = "disk"  // bytes of the workspace
	LimitFiles   Limit = "files" // number of files in the workspace
)

// LimitNames returns every limit in the order that reports show them.
func LimitNames() []Limit {
	return []Limit{LimitNetwork, LimitMemory, LimitCPU, LimitPIDs, LimitDisk, LimitFiles}
}

// Isolation is a measured report: what really holds, for a host or a session.
type Isolation struct {
	Boundary Boundary    `json:"boundary"`
	Network  Enforcement `json:"network"`
	Memory   Enforcement `json:"memory"`
	CPU      Enforcement `json:"cpu"`
	PIDs     Enforcement `json:"pids"`
	Disk     Enforcement `json:"disk"`
	Files    Enforcement `json:"files"`
	// Policy says what keeps programs that the command policy does not list from
	// running: the kernel, or only the check of each command before it starts.
	Policy Enforcement `json:"policy"`
}

// Of returns how far one limit holds; Absent for a limit that was never reported.
func (i Isolation) Of(l Limit) Enforcement {
	e := map[Limit]Enforcement{
		LimitNetwork: i.Network, LimitMemory: i.Memory, LimitCPU: i.CPU,
		LimitPIDs: i.PIDs, LimitDisk: i.Disk, LimitFiles: i.Files,
	}[l]
	if e == "" {
		return Absent
	}
	return e
}
