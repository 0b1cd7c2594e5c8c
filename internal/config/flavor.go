package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Flavors are sizes of sandboxes by name.
type Flavors map[string]cove.Resources

// builtinFlavors are there without being written down.
func builtinFlavors() Flavors {
	return Flavors{
		"small":  {CPUs: 1, Memory: 1 * cove.GiB, PIDs: 256},
		"medium": {CPUs: 2, Memory: 2 * cove.GiB, PIDs: 512},
		"large":  {CPUs: 4, Memory: 4 * cove.GiB, PIDs: 1024},
	}
}

// Names returns the names, sorted.
func (f Flavors) Names() []string { return slices.Sorted(maps.Keys(f)) }

const maxPlainName = 64

// plainName reports whether a name can stand in a file of settings, a flag and
// a path: small letters, digits, and inside it also - . and _.
func plainName(name string) bool {
	bad := strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-'
	})
	return !bad && name != "" && len(name) <= maxPlainName && !strings.ContainsAny(name[:1], "_.-")
}

// flavorFields are the settings of one flavor, checked like any other.
func flavorFields() map[string]Setting {
	return map[string]Setting{
		"cpus":   {min: "0.01", max: "1024", typ: reflect.TypeFor[float64]()},
		"memory": {min: "4", max: "67108864", unit: "m", typ: reflect.TypeFor[cove.Bytes]()},
		"pids":   {min: "1", max: "4194304", typ: reflect.TypeFor[int]()},
	}
}

func (f *Flavors) fromNode(n node) error {
	all := builtinFlavors()
	for _, b := range n.tree {
		if !plainName(b.key) {
			return atLine(b.line, "%.80q is not a name; use up to 64 small letters, digits, - . and _", b.key)
		}
		r, err := resourcesFrom(b)
		if err != nil {
			return err
		}
		all[b.key] = r
	}
	*f = all
	return nil
}

func resourcesFrom(flavor branch) (cove.Resources, error) {
	var r cove.Resources
	if flavor.node.kind != isTree {
		return r, atLine(flavor.line, "%s is %s; write it as {cpus: 1, memory: 1g}", flavor.key, flavor.node.kind)
	}
	for _, b := range flavor.node.tree {
		s, ok := flavorFields()[b.key]
		if !ok {
			return r, atLine(b.line, "%s has the unknown key %.80q; use cpus, memory and pids", flavor.key, b.key)
		}
		v, err := s.parse(b.node.text)
		if err != nil {
			return r, atLine(b.line, "%s.%s: %s", flavor.key, b.key, err)
		}
		switch b.key {
		case "cpus":
			r.CPUs = v.Float()
		case "memory":
			r.Memory = cove.Bytes(v.Int())
		case "pids":
			r.PIDs = int(v.Int())
		}
	}
	if r.CPUs == 0 || r.Memory == 0 {
		return r, atLine(flavor.line, "%s lacks cpus or memory; write both, such as {cpus: 1, memory: 1g}", flavor.key)
	}
	return r, nil
}
