package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// derive fills in the defaults that depend on the machine or on one another.
func (l *loader) derive() error {
	c := &l.config
	if c.NodeID == "" {
		name, err := l.Host.Hostname()
		if err != nil || name == "" {
			name = "localhost"
		}
		c.NodeID = name
	}
	c.machine = machineMemory(l.Host)
	if c.Session.MaxTotalMemory == 0 {
		c.Session.MaxTotalMemory = c.machine / 10 * 8 / cove.MiB * cove.MiB
	}
	if c.Redis.URL == "" && c.Redis.Host != "" {
		c.Redis.Port = orDefault(c.Redis.Port, 6379)
		c.Redis.URL = "redis://" + net.JoinHostPort(c.Redis.Host, strconv.Itoa(c.Redis.Port))
		c.origins["REDIS_URL"] = c.Origin("REDIS_HOST")
	}
	return nil
}

// SandboxMemory is what all sandboxes of this machine may have together: what sessions may,
// an eighth more for sandboxes that wait ready-made, and at most nine tenths of the
// machine. It is 0 where it is not known.
func (c Config) SandboxMemory() cove.Bytes {
	most := c.Session.MaxTotalMemory + c.Session.MaxTotalMemory/8
	if c.machine > 0 {
		most = min(most, c.machine/10*9)
	}
	return most / cove.MiB * cove.MiB
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

// check refuses what each setting alone may be and all together may not.
func (l *loader) check() error {
	for _, look := range []func() error{
		l.checkProviders, l.checkPolicy, l.checkNames, l.checkAddresses, l.checkTLS, l.checkPublic, l.checkRemote, l.checkDocker, l.checkE2B, l.checkRedis, l.checkRegions, l.checkPool, l.checkVolumes, l.checkEgress, l.checkModel,
		l.checkPrices,
	} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// wrong is the error about a setting that was set by the name the user wrote.
func (l *loader) wrong(env, format string, args ...any) error {
	o := l.config.Origin(env)
	text := fmt.Sprintf(format, args...)
	if o.Place != "" {
		text += " (" + o.Place + ")"
	}
	return cove.InvalidField(l.config.called(env), "%s", text)
}

func (l *loader) checkProviders() error {
	c := &l.config
	if c.IsSet("SANDBOX_PROVIDER") && !l.knows(c.Provider) {
		return l.wrong("SANDBOX_PROVIDER", "%.80q is unknown; use %s", c.Provider, orList(l.Providers))
	}
	if c.IsSet("SANDBOX_PROVIDER") && len(c.Fallback) > 1 && c.Fallback[0] == c.Provider {
		c.Fallback = c.Fallback[1:] // the whole order was written
	}
	for i, name := range c.Fallback {
		switch {
		case !l.knows(name):
			return l.wrong("SANDBOX_FALLBACK", "names the unknown provider %.80q; use %s", name, orList(l.Providers))
		case name == c.Provider && i > 0 && !c.IsSet("SANDBOX_PROVIDER"):
			return l.wrong("SANDBOX_FALLBACK", "names %s after others, and it is tried first while SANDBOX_PROVIDER is not set; set SANDBOX_PROVIDER=%s too, or leave %s out",
				name, c.Fallback[0], name)
		case name == c.Provider || slices.Contains(c.Fallback[:i], name):
			return l.wrong("SANDBOX_FALLBACK", "names %s, which is tried before already; name each provider once", name)
		}
	}
	return nil
}

func (l *loader) checkNames() error {
	c := &l.config
	if _, ok := c.Flavors[c.Session.Flavor]; !ok {
		return l.wrong("MSB_DEFAULT_FLAVOR", "%.80q is unknown; use %s", c.Session.Flavor, orList(c.Flavors.Names()))
	}
	if len(c.NodeID) > 128 || strings.ContainsFunc(c.NodeID, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return l.wrong("COVE_NODE_ID", "%.80q is not a node's name; use up to 128 letters, digits and signs without spaces", c.NodeID)
	}
	return nil
}

func (l *loader) checkAddresses() error {
	c := &l.config
	for _, a := range []struct{ env, addr string }{{"COVE_ADDR", c.Server.Addr}, {"COVE_PREVIEW_ADDR", c.Preview.Addr}, {"COVE_E2B_ADDR", c.Faces.E2BAddr}, {"COVE_MSB_ADDR", c.Faces.MSBAddr}} {
		if a.addr == "" {
			continue
		}
		_, port, err := net.SplitHostPort(a.addr)
		if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
			return l.wrong(a.env, "%.80q is not an address and port; write one such as 127.0.0.1:8000", a.addr)
		}
	}
	if c.Preview.Domain != "" && c.Preview.Addr != "" {
		return l.wrong("COVE_PREVIEW_ADDR", "contradicts %s; previews have a domain or an address of their own, so keep one", c.called("COVE_PREVIEW_DOMAIN"))
	}
	if c.Preview.Addr != "" && c.Preview.Addr == c.Server.Addr && !strings.HasSuffix(c.Preview.Addr, ":0") { // which is any free port
		return l.wrong("COVE_PREVIEW_ADDR", "is the address of the server itself; previews need another one, such as 127.0.0.1:8001")
	}
	return nil
}

// checkTLS wants a certificate and its key, or neither.
func (l *loader) checkTLS() error {
	for _, pair := range [][2]string{{"COVE_TLS_CERT", "COVE_TLS_KEY"}, {"COVE_TLS_KEY", "COVE_TLS_CERT"}} {
		if l.config.IsSet(pair[0]) && !l.config.IsSet(pair[1]) {
			return l.wrong(pair[0], "is set and %s is not; set both, or neither", pair[1])
		}
	}
	return nil
}

// checkPublic looks at the names under which browsers come.
func (l *loader) checkPublic() error {
	c := &l.config
	u, err := url.Parse(c.Server.PublicURL)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return l.wrong("COVE_PUBLIC_URL", "is more than a place; write one such as https://cove.example.com, without a user or a query")
	}
	if d := c.Preview.Domain; d != "" && !isDomain(d) {
		return l.wrong("COVE_PREVIEW_DOMAIN", "%.80q is not a domain in lower case; write one such as preview.example.com, without a port", d)
	}
	if d := c.Faces.E2BDomain; d != "" && !isDomain(withoutPort(d)) {
		return l.wrong("COVE_E2B_DOMAIN", "%.80q is not a domain in lower case; write one such as sandboxes.example.com or cove.test:8443", d)
	}
	return nil
}

// isDomain reports whether name can stand behind the label of a preview, in a
// host name of at most 253 bytes.
func isDomain(name string) bool {
	const preview = len("65535-.") + 26
	if len(name)+preview > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		strange := strings.ContainsFunc(label, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' })
		if strange || label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	return net.ParseIP(name) == nil
}

// checkRemote looks at the two ways to name a server: ours and SANDBOX_MODE.
func (l *loader) checkRemote() error {
	c := &l.config
	both := c.IsSet("COVE_URL") && c.IsSet("SANDBOX_URL") && c.Client.Mode == "remote"
	switch {
	case both && c.Client.URL != c.Client.SandboxURL && c.Origin("COVE_URL").Source != FromFlag:
		return l.wrong("COVE_URL", "%q contradicts %s=%q; both name the server, so keep one", redacted(c.Client.URL), c.called("SANDBOX_URL"), redacted(c.Client.SandboxURL))
	case c.Client.URL != "" && c.Client.Mode == "local" && c.IsSet("SANDBOX_MODE") && c.Origin("COVE_URL").Source != FromFlag:
		return l.wrong("SANDBOX_MODE", "local contradicts %s, which names a server; remove one of them", c.called("COVE_URL"))
	}
	return nil
}

func (l *loader) checkDocker() error {
	d := l.config.Docker
	if d.TLSVerify && d.CertPath == "" {
		return l.wrong("DOCKER_TLS_VERIFY", "is on and DOCKER_CERT_PATH is not set; set it to the directory with ca.pem, cert.pem and key.pem")
	}
	if d.TLSVerify && strings.HasPrefix(d.Host, "unix:") {
		return l.wrong("DOCKER_TLS_VERIFY", "is on and %s is a local socket, which has no certificate; remove one of them", l.config.called("DOCKER_HOST"))
	}
	return nil
}

// checkE2B wants a domain that machines have names below.
func (l *loader) checkE2B() error {
	host, port, cut := strings.Cut(l.config.E2B.Domain, ":")
	_, err := strconv.ParseUint(port, 10, 16)
	if !isDomain(host) || cut && err != nil {
		return l.wrong("E2B_DOMAIN", "%.80q is not a domain in lower case; write one such as e2b.app", l.config.E2B.Domain)
	}
	return nil
}

func (l *loader) checkRedis() error {
	c := &l.config
	if c.IsSet("REDIS_PORT") && c.Redis.Host == "" && c.Redis.URL == "" {
		return l.wrong("REDIS_PORT", "is set and REDIS_HOST is not; set the host too")
	}
	if c.Redis.Secret != "" && c.Redis.URL == "" {
		return l.wrong("COVE_CLUSTER_SECRET", "is set and REDIS_URL is not, so this server would be alone and not a node; set REDIS_URL, or unset it")
	}
	if c.Redis.Host == "" && !c.IsSet("REDIS_PORT") || c.Origin("REDIS_URL") == c.Origin("REDIS_HOST") {
		return nil
	}
	u, err := url.Parse(c.Redis.URL)
	if err != nil {
		return l.wrong("REDIS_URL", "is not a URL; write one such as redis://localhost:6379")
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	if c.Redis.Host != "" && c.Redis.Host != u.Hostname() {
		return l.wrong("REDIS_HOST", "%q contradicts the host in %s; keep one of them", c.Redis.Host, c.called("REDIS_URL"))
	}
	if c.Redis.Port != 0 && strconv.Itoa(c.Redis.Port) != port {
		return l.wrong("REDIS_PORT", "%d contradicts the port in %s; keep one of them", c.Redis.Port, c.called("REDIS_URL"))
	}
	return nil
}

func (l *loader) checkPool() error {
	if p := l.config.Pool; p.Size > p.Max {
		name := "POOL_SIZE"
		if !l.config.IsSet(name) {
			name = "MAX_POOL_SIZE"
		}
		return l.wrong(name, "POOL_SIZE is %d and MAX_POOL_SIZE %d; make the first at most the second", p.Size, p.Max)
	}
	return nil
}

func (l *loader) checkVolumes() error {
	v := l.config.Volumes
	for _, p := range v.Allowed {
		p = strings.TrimSuffix(p, ":rw")
		if !filepath.IsAbs(p) || filepath.Clean(p) != p {
			return l.wrong("COVE_VOLUMES", "%.200q must be an absolute path without . or ..; write one such as /srv/data or /srv/out:rw", p)
		}
	}
	if err := (cove.Spec{Volumes: v.Shared}).Validate(); err != nil {
		return l.wrong("MSB_SHARED_VOLUME_PATH", "%s", strings.TrimPrefix(cove.MessageOf(err), "volumes: "))
	}
	return nil
}

func (l *loader) checkModel() error {
	m := l.config.Model
	if m.URL == "" && (m.Key != "" || m.Name != "") {
		name := "COVE_MODEL"
		if m.Key != "" {
			name = "COVE_MODEL_KEY"
		}
		return l.wrong(name, "is set and COVE_MODEL_URL is not; set the URL of the model's API too")
	}
	return nil
}

// Remote returns the server that commands talk to, and whether there is one:
// COVE_URL, or SANDBOX_URL with SANDBOX_MODE=remote.
func (c Config) Remote() (string, bool) {
	switch {
	case c.Client.URL != "":
		return c.Client.URL, true
	case c.Client.Mode == "remote":
		return c.Client.SandboxURL, true
	}
	return "", false
}

// withoutPort returns a domain without the port behind it, if that is one.
func withoutPort(domain string) string {
	host, port, err := net.SplitHostPort(domain)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 {
		return domain
	}
	return host
}
