package rootfs

import (
	"slices"
	"strings"
)

// Base is the template that is always there: the host's own programs.
const Base = "base"

// Wanted is a package that a builtin template needs.
type Wanted struct {
	Name  string
	Least int // the first number of its version; 0: any
}

// recipe says when the host has all of a builtin template already, and what to
// add where it has not.
type recipe struct {
	name     string
	programs []string // in the host's /usr
	modules  []string // of its Python
	packages []Wanted
	preload  map[string][]string
}

// recipes are the builtin templates beside [Base].
var recipes = []recipe{
	{
		name: "data", programs: []string{"python3"}, modules: []string{"numpy", "pandas", "matplotlib"},
		packages: []Wanted{{Name: "python3"}, {Name: "python3-numpy"}, {Name: "python3-pandas"}, {Name: "python3-matplotlib"}},
		preload:  map[string][]string{"python": {"numpy", "pandas", "matplotlib.pyplot"}},
	},
	{name: "node", programs: []string{"node"}, packages: []Wanted{{Name: "nodejs"}}},
	{name: "python", programs: []string{"python3"}, packages: []Wanted{{Name: "python3"}}},
	{
		name:     "sandbox",
		programs: []string{"node", "python3", "gcc", "g++", "make", "git", "vim", "nano", "htop", "jq"},
		packages: []Wanted{
			{Name: "build-essential"},
			{Name: "ca-certificates"},
			{Name: "git"},
			{Name: "htop"},
			{Name: "jq"},
			{Name: "nano"},
			{Name: "nodejs", Least: leastNode},
			{Name: "python3"},
			{Name: "python3-pandas"},
			{Name: "vim"},
		},
	},
}

// leastNode is the oldest Node that the template sandbox may have.
const leastNode = 20

// Builtin returns the names of the templates that need no description.
func Builtin() []string {
	names := []string{Base}
	for _, r := range recipes {
		names = append(names, r.name)
	}
	return names
}

// Packages returns the Debian packages of a builtin template.
func Packages(name string) (packages []Wanted, ok bool) {
	r, ok := recipeOf(name)
	return slices.Clone(r.packages), ok
}

// Preload returns the modules that code in a builtin template imports first, by
// language.
func Preload(name string) map[string][]string {
	r, _ := recipeOf(name)
	return r.preload
}

func recipeOf(name string) (recipe, bool) {
	i := slices.IndexFunc(recipes, func(r recipe) bool { return r.name == name })
	if i < 0 {
		return recipe{}, false
	}
	return recipes[i], true
}

// builtin is a builtin template that nobody built: the host as it is, if that
// has all of it.
func builtin(top, name string) Entry {
	r, _ := recipeOf(name) // the base has none, and lacks nothing
	e := Entry{Manifest: Manifest{Name: name, Kind: KindHost, Source: "the host's own programs", Preload: r.preload}, Ready: true}
	if missing := r.missing(top); len(missing) > 0 {
		e.Kind, e.Source = KindLayer, ""
		e.Ready, e.Why = false, "it is not built, and the host lacks "+strings.Join(missing, ", ")
		e.Remedy = "cove template build " + name
	}
	return e
}

func (r recipe) missing(top string) (missing []string) {
	for _, name := range r.programs {
		switch {
		case !program(top, name):
			missing = append(missing, name)
		case r.name == "sandbox" && name == "node" && nodeVersion(top) < leastNode:
			missing = append(missing, "node 20 or later")
		}
	}
	for _, name := range r.modules {
		if !module(top, name) {
			missing = append(missing, name)
		}
	}
	return missing
}
