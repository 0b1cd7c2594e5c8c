package userns

import "syscall"

// Mapped is whether a map of users has all that are given away.
var Mapped = mapped

// Turn has leases hand out so many in turn.
func (l *Leases) Turn(n uint32) { l.turn, l.next = n, 0 }

// ExplainAt is what Probe says about answers of the kernel, one for each step,
// on a host with this file tree.
func ExplainAt(root string, said ...syscall.Errno) Report {
	var all [steps]syscall.Errno
	copy(all[:], said)
	return explain(all, gather(root))
}
