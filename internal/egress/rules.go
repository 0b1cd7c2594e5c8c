package egress

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// rules is a list of hosts. The zero value allows none.
type rules struct {
	open   bool             // every host, at every port
	exact  map[string]ports // by name
	within map[string]ports // by the part after "*."
}

// ports are those that a rule names; a rule without one means 80 and 443.
type ports struct {
	usual bool
	more  []uint16
}

func (p ports) has(port uint16) bool {
	return p.usual && (port == 80 || port == 443) || slices.Contains(p.more, port)
}

func parseRules(field string, list []string) (rules, error) {
	r := rules{exact: map[string]ports{}, within: map[string]ports{}}
	if len(list) > mostHosts {
		return r, cove.InvalidField(field, "has %d hosts; the most is %d", len(list), mostHosts)
	}
	for _, text := range list {
		host, port, named := strings.Cut(text, ":")
		into := r.exact
		if rest, ok := strings.CutPrefix(host, "*."); ok {
			host, into = rest, r.within
		}
		name, ok := cleanName(host)
		if !ok {
			return r, cove.InvalidField(field, "%.80q is not a host; use names such as pypi.org, *.github.com or api.example.com:8443", text)
		}
		p := into[name]
		if named {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return r, cove.InvalidField(field, "%.80q has no port after the colon; use 1 to 65535", text)
			}
			p.more = append(p.more, uint16(n))
		} else {
			p.usual = true
		}
		into[name] = p
	}
	return r, nil
}

// allows reports whether a clean name may be reached at a port.
func (r *rules) allows(name string, port uint16) bool {
	if r.open {
		return true
	}
	if r.exact[name].has(port) {
		return true
	}
	for _, rest, ok := strings.Cut(name, "."); ok; _, rest, ok = strings.Cut(rest, ".") {
		if r.within[rest].has(port) {
			return true
		}
	}
	return false
}

// knows reports whether a clean name may be reached at some port.
func (r *rules) knows(name string) bool {
	if r.open {
		return true
	}
	if _, ok := r.exact[name]; ok {
		return true
	}
	for _, rest, ok := strings.Cut(name, "."); ok; _, rest, ok = strings.Cut(rest, ".") {
		if _, ok := r.within[rest]; ok {
			return true
		}
	}
	return false
}

// Ports returns the ports that a list of hosts names besides 80 and 443, in no
// order and each once. It is what needs a socket to be reachable.
func Ports(hosts []string) ([]uint16, error) {
	r, err := parseRules("network.allow", hosts)
	if err != nil {
		return nil, err
	}
	var list []uint16
	seen := map[uint16]bool{80: true, 443: true}
	for _, m := range []map[string]ports{r.exact, r.within} {
		for _, p := range m {
			for _, port := range p.more {
				if !seen[port] {
					seen[port] = true
					list = append(list, port)
				}
			}
		}
	}
	return list, nil
}

// cleanName returns the one form of a host name: lower case, without a dot at the
// end. It refuses what is no host name, and what some programs take for an
// address, such as 1.2.3.4 or 0x7f.1.
func cleanName(text string) (string, bool) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	if name == "" || len(name) > 253 {
		return "", false
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if !cleanLabel(label) {
			return "", false
		}
		last = label
	}
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.Trim(last, "0123456789") == "" {
		return "", false
	}
	return name, true
}

func cleanLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
