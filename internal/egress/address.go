package egress

import (
	"net/netip"
	"slices"
)

// special are the ranges that are not the public internet: IANA's registries of
// special addresses, and forms of IPv6 that carry an address of IPv4.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	// Of IPv6 only 2000::/3 is given out; these are parts of it.
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
)

// metadata are the addresses at which clouds tell a machine its credentials. A
// range that is opened and holds one of them does not open it.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("169.254.170.23"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd20:ce::254"),
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// reachable reports whether an address may be dialled: one of the public internet
// that is not this machine's own, or one in a range that was opened.
func reachable(a netip.Addr, private []netip.Prefix, own []netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if slices.Contains(metadata, a) {
		return slices.Contains(private, netip.PrefixFrom(a, a.BitLen()))
	}
	for _, p := range private {
		if p.Contains(a) {
			return true
		}
	}
	return public(a) && !slices.Contains(own, a)
}

func public(a netip.Addr) bool {
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
		if slices.Contains(metadata, a) {
			return false
		}
	}
	if a.Is6() && !global.Contains(a) || !a.IsValid() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
