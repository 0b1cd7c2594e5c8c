package cove

// maxSecrets bounds Network.Secrets, and maxSecretName the length of one name.
const (
	maxSecrets    = 32
	maxSecretName = 64
)

// Validate reports the first field that no platform could accept. An empty mode
// is the platform's own.
func (n Network) Validate() error {
	switch n.Mode {
	case "", NetworkNone, NetworkOpen:
		if len(n.Allow) > 0 {
			return InvalidField("network.allow", "goes only with network.mode allow")
		}
	case NetworkAllow:
		if len(n.Allow) == 0 {
			return InvalidField("network.allow", "is empty; name at least one host, such as pypi.org or *.github.com")
		}
	default:
		return InvalidField("network.mode", "%.40q is unknown; use none, allow or open", string(n.Mode))
	}
	for _, name := range n.Allow {
		if len(name) > maxNameLen || !hostPattern().MatchString(name) {
			return InvalidField("network.allow", "%.300q is not a host name; use names such as pypi.org, *.github.com or api.example.com:443", name)
		}
	}
	if err := atMost("network.allow", len(n.Allow)); err != nil {
		return err
	}
	return n.validateSecrets()
}

func (n Network) validateSecrets() error {
	if len(n.Secrets) > 0 && n.Mode != NetworkAllow && n.Mode != NetworkOpen {
		return InvalidField("network.secrets", "goes only with network.mode allow or open")
	}
	if len(n.Secrets) > maxSecrets {
		return InvalidField("network.secrets", "has %d entries; the most is %d", len(n.Secrets), maxSecrets)
	}
	seen := map[string]bool{}
	for _, name := range n.Secrets {
		if len(name) > maxSecretName || !isName(name, "_-.") {
			return InvalidField("network.secrets", "%.80q is not the name of a secret; use up to %d letters, digits and _-.", name, maxSecretName)
		}
		if seen[name] {
			return InvalidField("network.secrets", "%q is there twice", name)
		}
		seen[name] = true
	}
	return nil
}
