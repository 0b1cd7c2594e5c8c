package config

import (
	"errors"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Secrets are credentials by name that requests of sandboxes get on their way
// out.
type Secrets map[string]Credential

// Credential is a header for some hosts. Its value is written in the file, or
// read from where the file says.
type Credential struct {
	Hosts     []string
	Header    string
	Value     Secret
	ValueEnv  string // the variable that it came from, or ""
	ValueFile string // the file that it came from, or ""
	Plain     bool   // goes out without TLS, too
}

// Names returns the names, sorted.
func (s Secrets) Names() []string { return slices.Sorted(maps.Keys(s)) }

func (s *Secrets) fromNode(n node) error {
	all := Secrets{}
	for _, b := range n.tree {
		if !plainName(b.key) {
			return atLine(b.line, "%.80q is not a name; use up to 64 small letters, digits, - . and _", b.key)
		}
		c, err := credentialFrom(b)
		if err != nil {
			return err
		}
		all[b.key] = c
	}
	*s = all
	return nil
}

func credentialFrom(secret branch) (Credential, error) {
	const example = "{hosts: [api.example.com], header: Authorization, value_env: NAME}"
	var c Credential
	if secret.node.kind != isTree {
		return c, atLine(secret.line, "%s is %s; write it as %s", secret.key, secret.node.kind, example)
	}
	values := 0
	for _, b := range secret.node.tree {
		if strings.HasPrefix(b.key, "value") {
			values++
		}
		if err := c.set(b); err != nil {
			return c, atLine(b.line, "%s.%s: %s", secret.key, b.key, err)
		}
	}
	switch {
	case len(c.Hosts) == 0 || c.Header == "":
		return c, atLine(secret.line, "%s lacks hosts or header; write it as %s", secret.key, example)
	case values != 1:
		return c, atLine(secret.line, "%s has %d values; write one of value, value_env and value_file", secret.key, values)
	}
	return c, nil
}

func (c *Credential) set(b branch) (err error) {
	if b.key == "hosts" {
		c.Hosts, err = b.node.words()
		return err
	}
	if b.node.kind != isText || b.node.text == "" {
		return errors.New("is " + string(b.node.kind) + " or empty; write a single value")
	}
	switch b.key {
	case "header":
		c.Header = b.node.text
	case "value":
		c.Value = Secret(b.node.text)
	case "value_env":
		c.ValueEnv = b.node.text
	case "value_file":
		c.ValueFile = b.node.text
	case "plain":
		c.Plain, err = parseBool(b.node.text)
	default:
		return errors.New("is not a setting; use hosts, header, plain and one of value, value_env and value_file")
	}
	return err
}

// maxSecretBytes bounds a file with a secret.
const maxSecretBytes = 16 << 10

// readSecrets gets the values that are elsewhere.
func (l *loader) readSecrets() error {
	all := l.config.Secrets
	for _, name := range all.Names() {
		c := all[name]
		switch {
		case c.ValueEnv != "":
			text, _ := l.Env(c.ValueEnv)
			c.Value = Secret(strings.TrimSpace(text))
			if c.Value == "" {
				return l.wrong("secrets", "%s takes its value from %.80s, which is not set; set it", name, c.ValueEnv)
			}
		case c.ValueFile != "":
			text, err := readSecret(c.ValueFile)
			if err != nil {
				return l.wrong("secrets", "%s: %.200s cannot be read (%s); name a file that holds the value and nothing else", name, c.ValueFile, cause(err))
			}
			c.Value = Secret(text)
		}
		all[name] = c
	}
	return nil
}

var errSecretSize = errors.New("it is empty or too long")

func readSecret(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the operator says which file
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || len(data) > maxSecretBytes {
		return "", errSecretSize
	}
	return text, nil
}

// inline is a credential as the file has it, in one line and masked.
func (c Credential) inline() string {
	value := "value: " + quoted(c.Value.String())
	if c.ValueEnv != "" {
		value = "value_env: " + quoted(c.ValueEnv)
	} else if c.ValueFile != "" {
		value = "value_file: " + quoted(c.ValueFile)
	}
	var hosts []string
	for _, h := range c.Hosts {
		hosts = append(hosts, quoted(h))
	}
	text := "{hosts: [" + strings.Join(hosts, ", ") + "], header: " + quoted(c.Header) + ", " + value
	if c.Plain {
		text += ", plain: true"
	}
	return text + "}"
}

// quoted is a text as YAML reads it without a second thought: a star or a colon
// would mean something.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Ranges returns the private ranges that sandboxes may reach.
func (e Egress) Ranges() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range e.Private {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() || p.Addr().Zone() != "" {
			return nil, errors.New(text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

func (l *loader) checkEgress() error {
	if _, err := l.config.Egress.Ranges(); err != nil {
		return l.wrong("COVE_EGRESS_PRIVATE", "%.80q is not a range of addresses; write one such as 10.1.0.0/16", err)
	}
	return nil
}
