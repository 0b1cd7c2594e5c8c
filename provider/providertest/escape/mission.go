package escape

import (
	"net"
	"os"

	"github.com/cove-sandbox/cove"
)

// mission is what the attacker is told about the host.
type mission struct {
	Secret   string   `json:"secret,omitempty"` // a path of the host
	Token    string   `json:"token"`            // what is in it, and in the host's environment
	TCP      []string `json:"tcp,omitempty"`    // listeners on the host's loopback
	UDP      string   `json:"udp,omitempty"`
	Unix     string   `json:"unix,omitempty"`
	Abstract string   `json:"abstract,omitempty"`
	Private  []string `json:"private,omitempty"` // addresses of the host
	PIDs     string   `json:"pids,omitempty"`    // the host's pid namespace
	Key      int      `json:"key,omitempty"`     // of shared memory, and a port, between sandboxes
	Read     string   `json:"read,omitempty"`    // volumes: one to read,
	Write    string   `json:"write,omitempty"`   // and one to write to
	Baited   bool     `json:"baited,omitempty"`  // there are devices and setuid programs in them
	Network  string   `json:"network,omitempty"` // the mode that the sandbox has
	Names    []string `json:"names,omitempty"`   // with ports, that its list has
	Apart    bool     `json:"apart,omitempty"`   // the sandbox has a kernel of its own
}

func (r *round) mission() mission {
	m := mission{Secret: r.secret(), Token: r.token, PIDs: namespaceOf("self", "pid")}
	for _, l := range r.tcp {
		m.TCP = append(m.TCP, l.Addr().String())
	}
	m.UDP, m.Unix, m.Abstract = r.udp.LocalAddr().String(), r.unix.Addr().String(), r.abstract.Addr().String()
	m.Private = hostAddresses()
	m.Key = r.tcp[0].Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener has no other
	m.Read, m.Write, m.Baited = readTarget, writeTarget, r.baited
	network := r.specFor(r.needs).Network
	m.Network = string(network.Mode)
	m.Names = network.Allow
	m.Apart = r.caps.Isolation.Boundary != cove.BoundaryNamespaces
	return m
}

// namespaceOf names a namespace of a process of the host, or "".
func namespaceOf(pid, kind string) string {
	name, _ := os.Readlink("/proc/" + pid + "/ns/" + kind) // "" where there is no /proc
	return name
}

// maxAddresses bounds how many addresses of the host are tried.
const maxAddresses = 8

// hostAddresses returns the addresses of the host that are not its loopback.
func hostAddresses() []string {
	all, _ := net.InterfaceAddrs() // none is as good as an error here
	var found []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() && len(found) < maxAddresses {
			found = append(found, n.IP.String())
		}
	}
	return found
}
