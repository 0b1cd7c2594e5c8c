package cli

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/wire"
)

// specFlags are the flags that say what a sandbox shall be like.
type specFlags struct {
	provider, template, flavor, policy string
	network, memory, cpus, pids        string
	workspace, workspaceSize, require  string
	allowNet, secrets, volumes, env    []string
}

func (f *specFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.provider, "provider", "", "the `name` of the provider that makes the sandbox (SANDBOX_PROVIDER)")
	fs.StringVar(&f.template, "template", "", "what is installed inside, by `name`")
	fs.StringVar(&f.flavor, "flavor", "", "the size by its `name`, such as small (MSB_DEFAULT_FLAVOR)")
	fs.StringVar(&f.policy, "policy", "", "the command policy: the `name` of one, such as agent-bash, or a file (SANDBOX_COMMAND_POLICY)")
	fs.StringArrayVar(&f.allowNet, "allow-net", nil, "a `host` that may be reached; may be repeated")
	fs.StringArrayVar(&f.secrets, "secret", nil, "the `name` of a credential of the operator's to put into requests; may be repeated")
	fs.StringVar(&f.network, "network", "", "what may be reached, the `mode`: none, allow or open")
	fs.StringArrayVarP(&f.volumes, "volume", "v", nil, "show a host path, or a volume by its name, inside, as `src:dst[:rw]`, read-only unless rw stands at the end; may be repeated")
	fs.StringArrayVarP(&f.env, "env", "e", nil, "set a variable, as `NAME[=value]`, or pass it on; may be repeated")
	fs.StringVar(&f.memory, "memory", "", "the memory, a `size` such as 512m; enforced or refused")
	fs.StringVar(&f.cpus, "cpus", "", "the processors, a `number` such as 0.5; enforced or refused")
	fs.StringVar(&f.pids, "pids", "", "the `number` of programs at once; enforced or refused")
	fs.StringVar(&f.workspace, "workspace", "", "where files are kept, the `kind`: memory or disk")
	fs.StringVar(&f.workspaceSize, "workspace-size", "", "the bytes of files, a `size` such as 100m; enforced or refused")
	fs.StringVar(&f.require, "require", "", "the weakest `boundary` to accept: none, namespaces, user_kernel, microvm or remote")
}

// spec reads the flags. Errors name the flag.
func (f *specFlags) spec(sys System) (cove.Spec, error) {
	s := cove.Spec{
		Provider: f.provider, Template: f.template, Flavor: f.flavor, Policy: f.policy,
		Network:   cove.Network{Mode: cove.NetworkMode(f.network), Allow: f.allowNet, Secrets: f.secrets},
		Workspace: cove.Workspace{Kind: cove.WorkspaceKind(f.workspace)},
		Require:   cove.Require{Isolation: cove.Boundary(f.require)},
	}
	if s.Network.Mode == "" && len(f.allowNet) > 0 {
		s.Network.Mode = cove.NetworkAllow
	}
	var err error
	if s.Env, err = environment("--env", f.env, sys); err != nil {
		return s, err
	}
	if s.Volumes, err = volumes(f.volumes); err != nil {
		return s, err
	}
	if err = f.amounts(&s); err != nil {
		return s, err
	}
	return s, s.Validate()
}

func (f *specFlags) amounts(s *cove.Spec) (err error) {
	if s.Resources.Memory, err = size("--memory", f.memory); err != nil {
		return err
	}
	if s.Workspace.Size, err = size("--workspace-size", f.workspaceSize); err != nil {
		return err
	}
	if f.cpus != "" {
		if s.Resources.CPUs, err = strconv.ParseFloat(f.cpus, 64); err != nil || !(s.Resources.CPUs > 0) {
			return cove.InvalidField("--cpus", "%.40q is not a number above 0; use one such as 1 or 0.5", f.cpus)
		}
	}
	if f.pids != "" {
		if s.Resources.PIDs, err = strconv.Atoi(f.pids); err != nil || s.Resources.PIDs < 1 {
			return cove.InvalidField("--pids", "%.40q is not a whole number above 0; use one such as 64", f.pids)
		}
	}
	return nil
}

func size(flag, text string) (cove.Bytes, error) {
	if text == "" {
		return 0, nil
	}
	b, err := cove.ParseBytes(text)
	if err != nil || b == 0 {
		return 0, cove.InvalidField(flag, "%.40q is not a size above 0; use one such as 512m or 1g", text)
	}
	return b, nil
}

// hugeTime is one part of Go's form. Where that is no time, it is too long for one.
var hugeTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\+?[0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h)$`)
})

// span reads a time above 0: seconds, or Go's own form.
func span(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil {
		d, err = wire.Longest+1, nil
		if seconds <= wire.Longest.Seconds() {
			d = time.Duration(seconds * float64(time.Second))
		}
	}
	if d > wire.Longest || err != nil && hugeTime().MatchString(text) {
		return 0, cove.InvalidField(flag, "%.40s is out of range; the most is %.0fh", text, wire.Longest.Hours())
	}
	if err != nil || d <= 0 {
		return 0, cove.InvalidField(flag, "%.40q is not a time above 0; use a number of seconds, or a form such as 30s or 5m", text)
	}
	return d, nil
}

// environment reads NAME=value, and NAME alone as the value it has here. A name
// that is not set here is left out, as Docker does.
func environment(flag string, list []string, sys System) (map[string]string, error) {
	return pairs(flag, list, func(name string) (string, bool) { return sys.Env(name) })
}

// pairs reads NAME=value; missing says what NAME alone means.
func pairs(flag string, list []string, missing func(name string) (string, bool)) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, item := range list {
		name, value, ok := strings.Cut(item, "=")
		if name == "" {
			return nil, cove.InvalidField(flag, "%.80q has no name; write NAME=value", item)
		}
		if !ok {
			if value, ok = missing(name); !ok {
				continue
			}
		}
		out[name] = value
	}
	return out, nil
}

// labels reads NAME=value; NAME alone is an error.
func labels(flag string, list []string) (map[string]string, error) {
	for _, item := range list {
		if !strings.Contains(item, "=") {
			return nil, cove.InvalidField(flag, "%.80q has no value; write NAME=value", item)
		}
	}
	return pairs(flag, list, func(string) (string, bool) { return "", false })
}

// volumes reads src:dst[:rw]. A source without a slash is the name of a volume, as
// Docker has it; ./name is a path.
func volumes(list []string) ([]cove.Volume, error) {
	var out []cove.Volume
	for _, item := range list {
		src, rest, _ := strings.Cut(item, ":")
		named := src != "" && src != "." && src != ".." && !strings.Contains(src, "/")
		switch {
		case named:
			item = "/" + item // for the form; a name is no path
		case src != "" && rest != "" && !filepath.IsAbs(src):
			abs, err := filepath.Abs(src)
			if err != nil {
				return nil, cove.InvalidField("--volume", "%.200q is relative and the working directory is gone; write an absolute path", src)
			}
			item = abs + ":" + rest
		}
		if strings.Count(item, ":") == 1 {
			item += ":ro"
		}
		v, err := config.ParseVolume(item)
		if err != nil {
			return nil, cove.InvalidField("--volume", "%s", err)
		}
		if named {
			v.Source, v.Name = "", src
		}
		out = append(out, v)
	}
	return out, nil
}
