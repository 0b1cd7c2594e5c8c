package egress

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says what may go out. It can be sent as JSON, in which the values of the
// secrets and the key of the authority are readable.
type Config struct {
	Network cove.Network `json:"network"`
	// Secrets are those that the network names, with their values.
	Secrets []Secret `json:"secrets,omitempty"`
	// Private are ranges that are not public and may be reached all the same.
	Private []netip.Prefix `json:"private,omitempty"`
	Limits  Limits         `json:"limits,omitzero"`
	// CA signs certificates for the hosts of secrets. Without it, TLS to them is
	// refused.
	CA *Authority `json:"ca,omitempty"`
}

// Secret is a header that requests to some hosts get on their way out.
type Secret struct {
	Name   string   `json:"name"`
	Hosts  []string `json:"hosts"` // as in cove.Network.Allow
	Header string   `json:"header"`
	Value  string   `json:"value"`
	// Plain lets the secret go out over HTTP without TLS, too, but never to port
	// 443. Without it, requests in clear text to these hosts are refused.
	Plain bool `json:"plain,omitempty"`
}

// String hides the value.
func (s Secret) String() string { return "secret " + s.Name }

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Limits bounds what one gateway does. Zero fields are those of DefaultLimits,
// except for Rate, of which zero is no bound.
type Limits struct {
	Connections int           `json:"connections,omitempty"` // at once
	PerSecond   int           `json:"per_second,omitempty"`  // new connections
	Rate        cove.Bytes    `json:"rate,omitempty"`        // bytes in a second, both ways and all connections together
	Idle        time.Duration `json:"idle,omitempty"`        // without a byte, then a connection is ended
	Dial        time.Duration `json:"dial,omitempty"`        // to resolve a name and to connect
	Names       int           `json:"names,omitempty"`       // that were asked for within ten minutes
	Queries     int           `json:"queries,omitempty"`     // of names, in a second
}

// DefaultLimits are those that hold when nothing else is said.
func DefaultLimits() Limits {
	return Limits{Connections: 256, PerSecond: 200, Idle: 5 * time.Minute, Dial: 15 * time.Second, Names: 4096, Queries: 200}
}

// The most that limits can be set to.
const (
	mostConnections = 1 << 16
	mostNames       = 1 << 16 // half of the range
	mostSecrets     = 64
	mostHosts       = 256
	mostValue       = 16 << 10
	longestWait     = 24 * time.Hour
)

// filled returns the limits with defaults in place of zeros.
func (l Limits) filled() Limits {
	d := DefaultLimits()
	for _, f := range []struct {
		field *int
		usual int
	}{{&l.Connections, d.Connections}, {&l.PerSecond, d.PerSecond}, {&l.Names, d.Names}, {&l.Queries, d.Queries}} {
		if *f.field == 0 {
			*f.field = f.usual
		}
	}
	if l.Idle == 0 {
		l.Idle = d.Idle
	}
	if l.Dial == 0 {
		l.Dial = d.Dial
	}
	return l
}

// Check reports the first limit that cannot be kept.
func (l Limits) Check() error {
	for _, f := range []struct {
		name       string
		value, top int64
	}{
		{"connections", int64(l.Connections), mostConnections},
		{"per_second", int64(l.PerSecond), mostConnections},
		{"names", int64(l.Names), mostNames},
		{"queries", int64(l.Queries), mostConnections},
		{"idle", int64(l.Idle), int64(longestWait)},
		{"dial", int64(l.Dial), int64(longestWait)},
		{"rate", int64(l.Rate), int64(cove.TiB)},
	} {
		if f.value < 0 || f.value > f.top {
			return cove.InvalidField("egress.limits."+f.name, "%d is out of range; the most is %d", f.value, f.top)
		}
	}
	if l.Rate != 0 && l.Rate < cove.KiB {
		return cove.InvalidField("egress.limits.rate", "%s is too little to get anything through; the least is 1k", l.Rate)
	}
	return nil
}

// Check reports what is wrong with a secret, without its value.
func (s Secret) Check() error {
	field := "secrets." + s.Name
	switch {
	case s.Name == "" || len(s.Name) > 64 || strings.Trim(s.Name, nameLetters+".") != "":
		return cove.InvalidField("secrets", "%.80q is not a name; use letters, digits, - . and _", s.Name)
	case len(s.Hosts) == 0 || len(s.Hosts) > mostHosts:
		return cove.InvalidField(field, "has %d hosts; name 1 to %d that it is for", len(s.Hosts), mostHosts)
	case !isToken(s.Header) || reserved[strings.ToLower(s.Header)]:
		return cove.InvalidField(field, "%.80q is not a header that can be set; use one such as Authorization or X-Api-Key", s.Header)
	case s.Value == "" || len(s.Value) > mostValue:
		return cove.InvalidField(field, "has a value of %d bytes; use 1 to %d", len(s.Value), mostValue)
	case strings.ContainsFunc(s.Value, isControl) || strings.TrimSpace(s.Value) != s.Value:
		return cove.InvalidField(field, "has a value with line breaks or other bytes that no header can hold, or with spaces around it")
	}
	_, err := parseRules(field+".hosts", s.Hosts)
	return err
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// isToken reports whether a text can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, nameLetters+"!#$%&'*+.^`|~") == ""
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// reserved are the headers that say where a request begins, ends and goes to.
var reserved = map[string]bool{
	"host": true, "connection": true, "content-length": true, "transfer-encoding": true, "te": true, "trailer": true,
	"upgrade": true, "keep-alive": true, "proxy-connection": true, "expect": true,
}

// policy is a Config in the form in which it is asked.
type policy struct {
	rules   rules
	secrets []boundSecret
	private []netip.Prefix
	limits  Limits
	signer  *signer // nil without an authority
}

type boundSecret struct {
	hosts         rules
	header, value string
	plain         bool
}

// goes reports whether the secret is for requests to a host in a connection with
// TLS or without.
func (s *boundSecret) goes(t target, secure bool) bool {
	return s.hosts.allows(t.name, t.port) && (secure || s.plain && t.port != securePort)
}

// securePort is where nothing but TLS is spoken.
const securePort = 443

// Check reports the first thing that is wrong with a config.
func (c Config) Check() error {
	_, err := compile(c)
	return err
}

func compile(c Config) (*policy, error) {
	p := &policy{private: c.Private, limits: c.Limits.filled()}
	if err := c.Limits.Check(); err != nil {
		return nil, err
	}
	for _, r := range c.Private {
		if !r.IsValid() || r.Addr().Is4In6() {
			return nil, cove.InvalidField("egress.private", "%s is not a range of addresses; write one such as 10.1.0.0/16", r)
		}
	}
	var err error
	switch c.Network.Mode {
	case cove.NetworkOpen:
		p.rules.open = true
	case cove.NetworkAllow:
		p.rules, err = parseRules("network.allow", c.Network.Allow)
	case cove.NetworkNone, "":
	default:
		err = cove.InvalidField("network.mode", "%q is unknown; use none, allow or open", string(c.Network.Mode))
	}
	if err != nil {
		return nil, err
	}
	if len(c.Secrets) > mostSecrets {
		return nil, cove.InvalidField("secrets", "there are %d; the most is %d", len(c.Secrets), mostSecrets)
	}
	for _, s := range c.Secrets {
		if err := s.Check(); err != nil {
			return nil, err
		}
		hosts, err := parseRules("secrets."+s.Name+".hosts", s.Hosts)
		if err != nil {
			return nil, err
		}
		p.secrets = append(p.secrets, boundSecret{hosts: hosts, header: s.Header, value: s.Value, plain: s.Plain})
	}
	if c.CA != nil {
		p.signer, err = c.CA.signer()
	}
	return p, err
}

// injects reports whether requests to a host get a secret.
func (p *policy) injects(name string, port uint16) bool {
	for i := range p.secrets {
		if p.secrets[i].hosts.allows(name, port) {
			return true
		}
	}
	return false
}

// readable reports whether requests to a host may go out in clear text: none of
// its secrets forbids it.
func (p *policy) readable(t target) bool {
	for i := range p.secrets {
		s := &p.secrets[i]
		if s.hosts.allows(t.name, t.port) && !s.goes(t, false) {
			return false
		}
	}
	return true
}
