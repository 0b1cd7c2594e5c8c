package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Sources is where settings come from beside the defaults. The zero value
// reads nothing but the machine.
type Sources struct {
	Env       func(name string) (string, bool) // nil: an empty environment
	Flags     map[string]string                // the flags that were given, without dashes
	Providers []string                         // the providers of this build; nil: any name will do
	Root      bool                             // whether the user is root, who keeps things elsewhere
	Host      Host                             // nil: this machine
}

// Environment reads one variable of this process, for [Sources].
func Environment(name string) (string, bool) { return os.LookupEnv(name) }

// Load resolves and checks every setting. A variable that is set to nothing
// counts as not set. The error is Invalid, of the class
// [cove.ErrConfiguration], and has the setting in Details["field"].
func Load(src Sources) (Config, error) {
	if src.Env == nil {
		src.Env = func(string) (string, bool) { return "", false }
	}
	if src.Host == nil {
		src.Host = thisMachine{}
	}
	l := loader{Sources: src, settings: settings(), config: Config{origins: map[string]Origin{}}}
	for _, step := range []func() error{l.defaults, l.home, l.file, l.environment, l.flags, l.readPolicy, l.readSecrets, l.derive, l.check} {
		if err := step(); err != nil {
			return Config{}, cove.WithReason(err, cove.ReasonConfiguration)
		}
	}
	return l.config, nil
}

type loader struct {
	Sources

	settings []Setting
	config   Config
}

func (l *loader) defaults() error {
	for _, s := range l.settings {
		if s.Default == "" {
			continue
		}
		v, err := s.parse(s.Default)
		if err != nil {
			return cove.InvalidField(s.name(), "its default is wrong: %s", err)
		}
		s.field(&l.config).Set(v)
	}
	l.config.Flavors = builtinFlavors()
	l.config.Policies = Policies{}
	l.config.Imports = Imports{}
	l.config.Secrets = Secrets{}
	return nil
}

// home settles the two settings that say where the file is, before it is read.
func (l *loader) home() error {
	for _, s := range l.settings {
		if s.Key != "" {
			continue
		}
		if err := l.fromEnv(s); err != nil {
			return err
		}
		if err := l.fromFlag(s); err != nil {
			return err
		}
	}
	c := &l.config
	if c.Home == "" {
		home, err := defaultHome(l.Root, l.Env)
		if err != nil {
			return err
		}
		c.Home = home
	}
	for _, p := range []*string{&c.Home, &c.File} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return cove.InvalidField("COVE_HOME", "%q is relative and the working directory is gone; write an absolute path", *p)
		}
		*p = abs
	}
	return nil
}

func (l *loader) file() error {
	c := &l.config
	named := ""
	if c.IsSet("COVE_CONFIG") {
		named = c.Origin("COVE_CONFIG").Name
	} else {
		c.File = filepath.Join(c.Home, "config.yaml")
	}
	tree, err := readFile(c.File, named)
	if err != nil {
		return err
	}
	return l.applyFile(c.File, tree)
}

func (l *loader) environment() error {
	for _, s := range l.settings {
		if s.Key == "" || s.onlyInFile() {
			continue
		}
		if err := l.fromEnv(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) flags() error {
	for _, s := range l.settings {
		if s.Key == "" {
			continue // home has them, and made them absolute
		}
		if err := l.fromFlag(s); err != nil {
			return err
		}
	}
	return nil
}

// fromEnv sets a setting from its variable or its alias. Both may be set when
// they say the same.
func (l *loader) fromEnv(s Setting) error {
	var first reflect.Value
	var firstName string
	for _, name := range []string{s.Env, s.Alias} {
		text, ok := l.Env(name)
		if name == "" || !ok || strings.TrimSpace(text) == "" {
			continue
		}
		v, err := s.parse(text)
		if err != nil {
			return cove.InvalidField(name, "%s", err)
		}
		if firstName != "" && !reflect.DeepEqual(first.Interface(), v.Interface()) {
			return cove.InvalidField(name, "%q contradicts %s=%q; both set the same, so keep one", text, firstName, render(s, first))
		}
		first, firstName = v, name
		s.field(&l.config).Set(v)
		l.config.origins[s.Env] = Origin{Source: FromEnv, Name: name}
	}
	return nil
}

func (l *loader) fromFlag(s Setting) error {
	text, ok := l.Flags[s.Flag]
	if s.Flag == "" || !ok {
		return nil
	}
	name := "--" + s.Flag
	if strings.TrimSpace(text) == "" {
		return cove.InvalidField(name, "is empty; write a value or leave it out")
	}
	v, err := s.parse(text)
	if err != nil {
		return cove.InvalidField(name, "%s", err)
	}
	s.field(&l.config).Set(v)
	l.config.origins[s.Env] = Origin{Source: FromFlag, Name: name}
	return nil
}

// called returns the name under which the user set a setting, for messages.
func (c Config) called(env string) string {
	if o := c.Origin(env); o.Name != "" {
		return o.Name
	}
	return env
}

// knows reports whether a provider is part of this build.
func (l *loader) knows(provider string) bool {
	return l.Providers == nil || slices.Contains(l.Providers, provider)
}
