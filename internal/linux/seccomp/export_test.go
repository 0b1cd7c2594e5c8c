package seccomp

// Missing is what Probe says about an answer of the kernel.
var Missing = missing

// CallNames returns every call of this architecture.
func CallNames() []string {
	var names []string
	for _, c := range calls {
		names = append(names, c.name)
	}
	return names
}
