package landlock

// Missing is what Probe says about an answer of the kernel.
var Missing = missing

// Attributes returns what Restrict asks of a kernel with this ABI.
func Attributes(rs Ruleset, abi int) (fs Access, net, scoped uint64, uncovered []string) {
	a, uncovered := rs.attributes(abi)
	return Access(a.fs), a.net, a.scoped, uncovered
}
