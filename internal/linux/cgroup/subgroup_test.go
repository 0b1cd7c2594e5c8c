package cgroup_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// TestSubgroup is a service with DelegateSubgroup=: groups go beside the
// subgroup that the server is in, which systemd needs again for the next one.
func TestSubgroup(t *testing.T) {
	const unit = "cg/system.slice/cove.service"
	for _, c := range []struct {
		name   string
		mark   string
		handed string
		empty  string
	}{
		{"delegated", "1", unit, unit + "/server"},
		{"not delegated", "0", unit + "/server", unit},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLikeness(t, systemdMounts, "0::/system.slice/cove.service/server\n")
			for _, dir := range []string{"cg", "cg/system.slice", unit, unit + "/cove", unit + "/server", unit + "/server/cove"} {
				l.group2(dir, "cpu memory pids")
			}
			if err := unix.Setxattr(l.root+"/"+unit, "user.delegate", []byte(c.mark), 0); err != nil {
				t.Skipf("no attributes in the temporary directory: %v", err)
			}
			if _, err := l.open(cgroup.Config{}); err != nil {
				t.Fatal(err)
			}
			if got := l.text(c.handed + "/cgroup.subtree_control"); got != "+cpu +memory +pids" {
				t.Errorf("%s hands on %q", c.handed, got)
			}
			if got := l.text(c.empty + "/cgroup.subtree_control"); got != "" {
				t.Errorf("%s hands on %q, want nothing", c.empty, got)
			}
		})
	}
}
