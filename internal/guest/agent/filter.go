//go:build linux

package agent

import "github.com/cove-sandbox/cove/internal/linux/seccomp"

// filter keeps all threads of the agent, and all that it starts, from the system
// calls that no program needs, and from installing many filters of their own.
func filter() error {
	p, err := seccomp.Parse(seccomp.Compiled())
	if err != nil {
		return err
	}
	if err := seccomp.LimitFilters(true); err != nil {
		return err
	}
	return seccomp.Install(p, true)
}
