package config

import (
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Policies are command policies by name.
type Policies map[string]CommandPolicy

// CommandPolicy says which programs a command may start.
type CommandPolicy struct {
	Allow   []string    // programs that may run; all others may not
	Deny    []string    // programs that are refused with a rule of their own
	Ask     []string    // programs that may run once a person has agreed
	Helpers []string    // paths of programs that listed programs may start themselves
	Offline bool        // "network: none": no internet sockets for any of them
	Limits  cove.Limits // of every command
}

// builtinPolicies are there without being written down.
var builtinPolicies = []string{"agent-bash"}

// Names returns the names, sorted.
func (p Policies) Names() []string { return slices.Sorted(maps.Keys(p)) }

func (p *Policies) fromNode(n node) error {
	all := Policies{}
	for _, b := range n.tree {
		switch {
		case !plainName(b.key):
			return atLine(b.line, "%.80q is not a name; use up to 64 small letters, digits, - . and _", b.key)
		case slices.Contains(builtinPolicies, b.key):
			return atLine(b.line, "%s is built in; choose another name", b.key)
		}
		c, err := commandPolicyFrom(b)
		if err != nil {
			return err
		}
		all[b.key] = c
	}
	*p = all
	return nil
}

// limitFields are the bounds in a policy, checked like settings.
func limitFields() map[string]Setting {
	return map[string]Setting{
		"timeout":    {min: "0.001", max: "86400", typ: reflect.TypeFor[time.Duration]()},
		"max_output": {min: "1", max: "67108864", unit: "k", typ: reflect.TypeFor[cove.Bytes]()},
	}
}

func commandPolicyFrom(policy branch) (CommandPolicy, error) {
	var c CommandPolicy
	if policy.node.kind != isTree {
		return c, atLine(policy.line, "%s is %s; write it as {allow: [cat, grep], deny: [rm]}", policy.key, policy.node.kind)
	}
	for _, b := range policy.node.tree {
		if err := c.set(b); err != nil {
			return c, atLine(b.line, "%s.%s: %s", policy.key, b.key, err)
		}
	}
	if len(c.Allow)+len(c.Ask) == 0 {
		return c, atLine(policy.line, "%s allows nothing; name programs in allow or ask", policy.key)
	}
	for _, program := range c.Deny {
		if slices.Contains(c.Allow, program) || slices.Contains(c.Ask, program) {
			return c, atLine(policy.line, "%s contradicts itself: %.80q is in deny and in allow or ask; keep one", policy.key, program)
		}
	}
	return c, nil
}

func (c *CommandPolicy) set(b branch) (err error) {
	switch b.key {
	case "allow":
		c.Allow, err = b.node.words()
	case "deny":
		c.Deny, err = b.node.words()
	case "ask":
		c.Ask, err = b.node.words()
	case "helpers":
		c.Helpers, err = b.node.words()
	case "network":
		if b.node.text != "none" {
			return errors.New("only none can be set, which keeps commands from the network; leave it out for what the session's network mode allows")
		}
		c.Offline = true
	case "timeout", "max_output":
		v, err := limitFields()[b.key].parse(b.node.text)
		if err != nil {
			return err
		}
		if b.key == "timeout" {
			reflect.ValueOf(&c.Limits.Wall).Elem().Set(v)
		} else {
			reflect.ValueOf(&c.Limits.Output).Elem().Set(v)
		}
	default:
		return errors.New("is not a setting; use allow, deny, ask, helpers, network, timeout and max_output")
	}
	return err
}

// IsPolicyFile reports whether the name of a command policy is the path of a
// file that holds one.
func IsPolicyFile(name string) bool {
	ext := filepath.Ext(name)
	return strings.Contains(name, "/") || ext == ".yaml" || ext == ".yml"
}

// readPolicy reads the file that SANDBOX_COMMAND_POLICY names and puts what it
// holds beside the policies of the settings file, under the file's own name.
func (l *loader) readPolicy() error {
	c := &l.config
	path := c.CommandPolicy
	if !IsPolicyFile(path) {
		return nil
	}
	tree, err := readFile(path, c.called("SANDBOX_COMMAND_POLICY"))
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if !plainName(name) || slices.Contains(builtinPolicies, name) {
		return l.wrong("SANDBOX_COMMAND_POLICY", "%.80q cannot be the name of a policy; name the file with small letters, digits, - . and _", name)
	}
	policy, err := commandPolicyFrom(branch{key: name, line: 1, node: tree})
	if err != nil {
		return inFile(path, path, err)
	}
	c.Policies[name] = policy
	c.CommandPolicy = name
	return nil
}

func (l *loader) checkPolicy() error {
	c := &l.config
	known := slices.Concat(builtinPolicies, c.Policies.Names())
	if c.CommandPolicy != "" && !slices.Contains(known, c.CommandPolicy) {
		return l.wrong("SANDBOX_COMMAND_POLICY", "%.80q is unknown; use %s, or the path of a policy file", c.CommandPolicy, strings.Join(known, ", "))
	}
	return nil
}
