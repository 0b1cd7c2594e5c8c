//go:build linux

package e2b

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says which E2B, and how sandboxes are made there.
type Config struct {
	// Dir is a directory for this provider alone.
	Dir string
	// APIKey is the key of a team. Without one nothing is ready.
	APIKey string
	// Domain is where the machines are, and so in which region; "" is e2b.app.
	Domain string
	// APIURL is the API; "" is api. before the domain.
	APIURL string
	// SandboxURL leads to every machine, told apart by headers; "" is what the
	// domain has.
	SandboxURL string
	// Template is what the template "base" is called there; "" is base.
	Template string
	// Timeout is how long a machine lives without news from us; 0 is five minutes.
	Timeout time.Duration
	// Most bounds the sandboxes at once; 0 is as many as E2B allows.
	Most int
	// CPUHour and MemoryHour are what E2B asks for an hour of one CPU and of one
	// gigabyte, in US dollars, for estimates; both 0 makes none, and Probe says so.
	CPUHour    float64
	MemoryHour float64
	// Agent is the path of a static executable that is the agent; "" takes what
	// this build has.
	Agent string
}

const (
	name           = "e2b"
	template       = "base" // what callers call it
	defaultDomain  = "e2b.app"
	defaultTimeout = 5 * time.Minute
	envdPort       = "49983"
)

// shared are the domains that have one address for all machines.
var shared = []string{"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"}

func (c Config) withDefaults() (Config, error) {
	c.Domain = cmp.Or(c.Domain, defaultDomain)
	c.APIURL = strings.TrimSuffix(cmp.Or(c.APIURL, "https://api."+c.Domain), "/")
	c.SandboxURL = strings.TrimSuffix(c.SandboxURL, "/")
	c.Template = cmp.Or(c.Template, template)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	for _, u := range []struct{ setting, text string }{{"E2B_API_URL", c.APIURL}, {"E2B_SANDBOX_URL", c.SandboxURL}} {
		if parsed, err := url.Parse(u.text); u.text != "" && (err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https") {
			return c, cove.InvalidField(u.setting, "%.80q is not an address; write one such as https://api.e2b.app", u.text).Reason(cove.ReasonConfiguration)
		}
	}
	if !isHost(c.Domain) {
		return c, cove.InvalidField("E2B_DOMAIN", "%.80q is not a domain; write one such as e2b.app", c.Domain).Reason(cove.ReasonConfiguration)
	}
	return c, nil
}

// isHost reports whether a text is the name of a host, with a port or without.
func isHost(text string) bool {
	return text != "" && len(text) <= 253 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != ':'
	})
}

// envdAt returns where the daemon of a machine is. The domain is what the answer
// that told of the machine said, or "".
func (c Config) envdAt(machine, domain string) string {
	domain = cmp.Or(domain, c.Domain)
	switch {
	case c.SandboxURL != "":
		return c.SandboxURL
	case slices.Contains(shared, domain):
		return "https://sandbox." + domain
	}
	return "https://" + envdPort + "-" + machine + "." + domain
}
