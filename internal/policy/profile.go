package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Profile is a named list of programs that commands may start.
type Profile struct {
	// Name is how a session asks for the profile.
	Name string `json:"name"`
	// Allow names the programs that may run, with whatever arguments.
	Allow []string `json:"allow"`
	// Deny names programs and builtins that are refused with their own rule,
	// also where a builtin would be harmless.
	Deny []string `json:"deny,omitempty"`
	// Ask names programs and builtins that may run once a person has agreed, for
	// the command that they agreed to.
	Ask []string `json:"ask,omitempty"`
	// Helpers are absolute paths of programs, or directories of programs, that
	// listed programs start themselves. No command can name them.
	Helpers []string `json:"helpers,omitempty"`
	// Offline keeps commands from opening sockets of the internet families.
	Offline bool `json:"offline,omitempty"`
	// Limits bound every command under the profile.
	Limits cove.Limits `json:"limits,omitzero"`
}

// AgentBash is the built-in profile for agents that work on text and data.
func AgentBash() Profile {
	return Profile{
		Name: "agent-bash",
		Allow: []string{
			"jq", "awk", "grep", "sed", "sort", "uniq", "head", "tail", "wc", "cut", "tr",
			"cat", "echo", "date", "find", "ls", "python3", "python",
		},
		Deny:    []string{"rm", "mv", "dd", "sudo", "curl", "wget", "ssh"},
		Offline: true, // no program of the list is for the network
	}
}

const (
	maxProfileNames = 512
	maxProgramName  = 64
	maxHelpers      = 64
	maxHelperPath   = 1024
)

var (
	profileName = newPattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	programName = newPattern(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$|^[\[:.]$`)
)

// Validate reports the first thing that makes the profile unusable.
func (p Profile) Validate() error {
	if !profileName.MatchString(p.Name) {
		return cove.InvalidField("policy.name", "%.80q is not a profile's name; use up to 64 letters, digits, - . and _", p.Name)
	}
	if len(p.Allow)+len(p.Ask) == 0 {
		return cove.InvalidField("policy.allow", "profile %s lists no program; name at least one in allow or ask", p.Name)
	}
	if p.Limits.Wall < 0 || p.Limits.Output < 0 {
		return cove.InvalidField("policy.limits", "profile %s has a negative limit; 0 means none", p.Name)
	}
	if n := len(p.Allow) + len(p.Deny) + len(p.Ask); n > maxProfileNames {
		return cove.InvalidField("policy.allow", "profile %s has %d names; the most is %d", p.Name, n, maxProfileNames)
	}
	in := map[string]string{}
	for _, l := range []struct {
		field string
		names []string
	}{{"policy.allow", p.Allow}, {"policy.deny", p.Deny}, {"policy.ask", p.Ask}} {
		for _, name := range l.names {
			if err := validProgram(p.Name, l.field, name); err != nil {
				return err
			}
			if in[name] != "" {
				return cove.InvalidField(l.field, "profile %s has %q twice; a name stands in one list, once", p.Name, name)
			}
			in[name] = l.field
		}
	}
	return p.validHelpers()
}

func (p Profile) validHelpers() error {
	if n := len(p.Helpers); n > maxHelpers {
		return cove.InvalidField("policy.helpers", "profile %s has %d helpers; the most is %d; name a directory instead of its files", p.Name, n, maxHelpers)
	}
	for i, path := range p.Helpers {
		switch {
		case len(path) > maxHelperPath || !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0):
			return cove.InvalidField("policy.helpers", "profile %s: %.80q is not the path of a helper; write an absolute path without . and .., such as /usr/lib/git-core", p.Name, path)
		case strings.Count(path, "/") < 2 || slices.Contains(binaries, path+"/"):
			return cove.InvalidField("policy.helpers", "profile %s: %.80q holds more than the helpers of one program; name a file or directory below it", p.Name, path)
		case slices.Contains(p.Helpers[:i], path):
			return cove.InvalidField("policy.helpers", "profile %s has %.80q twice; write it once", p.Name, path)
		}
	}
	return nil
}

func validProgram(profile, field, name string) error {
	if len(name) > maxProgramName || !programName.MatchString(name) {
		return cove.InvalidField(field, "profile %s: %.80q is not the bare name of a program", profile, name)
	}
	if builtins[name] && field != "policy.deny" {
		return cove.InvalidField(field, "profile %s: %s is a builtin of the shell that runs a text as commands, or changes what names stand for; no profile can let it run", profile, name)
	}
	return nil
}

// list is a profile made ready for looking things up.
type list struct {
	name             string
	allow, deny, ask map[string]bool
	limits           cove.Limits
	programs         *cove.Programs // what the kernel may let every command execute
}

func newList(p Profile) *list {
	set := func(names []string) map[string]bool {
		m := map[string]bool{}
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	return &list{
		name: p.Name, allow: set(p.Allow), deny: set(p.Deny), ask: set(p.Ask), limits: p.Limits,
		programs: &cove.Programs{Names: slices.Sorted(slices.Values(p.Allow)), Helpers: slices.Sorted(slices.Values(p.Helpers)), Offline: p.Offline},
	}
}

// names reports whether a name stands in one of the lists.
func (l *list) names(name string) bool { return l.allow[name] || l.deny[name] || l.ask[name] }

// binaries are the folders in which a program may be named by its path.
var binaries = []string{"/bin/", "/usr/bin/", "/usr/local/bin/"}

// bare returns the name that the lists know a program by, or false for a path
// that could lead anywhere.
func bare(name string) (string, bool) {
	if !strings.Contains(name, "/") {
		return name, true
	}
	cut := strings.LastIndexByte(name, '/') + 1
	return name[cut:], slices.Contains(binaries, name[:cut])
}
