package config

import (
	"reflect"
	"strings"
)

// Setting describes one setting, from the tags of its field.
type Setting struct {
	Env     string   // SANDBOX_PROVIDER; "" for one that only the file can hold
	Alias   string   // another name in the environment, or ""
	Key     string   // its place in the file, such as server.addr; "" for one that the file cannot hold
	Flag    string   // without dashes, or ""
	Default string   // in the words of the environment, or ""
	Shown   string   // what stands for a default that is not a fixed value
	Doc     string   // one or two sentences
	Section string   // what the settings around it are about, or ""
	Later   bool     // no part of this build reads it
	Secret  bool     // its value is never shown
	OneOf   []string // the words it may be, or nil for any

	unit     string
	min, max string
	schemes  []string
	index    []int
	typ      reflect.Type
}

// Settings returns every setting in the order of [Config].
func Settings() []Setting { return settingsOf(reflect.TypeFor[Config](), "", "", nil) }

func settingsOf(t reflect.Type, prefix, section string, path []int) []Setting {
	var all []Setting
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		index := append(append([]int(nil), path...), i)
		if f.Type.Kind() == reflect.Struct {
			all = append(all, settingsOf(f.Type, f.Tag.Get("key")+".", f.Tag.Get("doc"), index)...)
			continue
		}
		all = append(all, settingOf(f, prefix, section, index))
	}
	return all
}

func settingOf(f reflect.StructField, prefix, section string, index []int) Setting {
	s := Setting{
		Env:     f.Tag.Get("env"),
		Alias:   f.Tag.Get("alias"),
		Flag:    f.Tag.Get("flag"),
		Default: f.Tag.Get("default"),
		Shown:   f.Tag.Get("shown"),
		Doc:     f.Tag.Get("doc"),
		Section: section,
		Later:   f.Tag.Get("later") != "",
		Secret:  f.Type == reflect.TypeFor[Secret](),
		OneOf:   strings.Fields(f.Tag.Get("oneof")),
		unit:    f.Tag.Get("unit"),
		min:     f.Tag.Get("min"),
		max:     f.Tag.Get("max"),
		schemes: strings.Fields(f.Tag.Get("url")),
		index:   index,
		typ:     f.Type,
	}
	if key := f.Tag.Get("key"); key != "" {
		s.Key = prefix + key
	}
	return s
}

// name is how code speaks of a setting whoever set it.
func (s Setting) name() string {
	if s.Env != "" {
		return s.Env
	}
	return s.Key
}

func (s Setting) field(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index)
}

// onlyInFile reports whether the setting is a tree, which one line cannot hold.
func (s Setting) onlyInFile() bool { return s.Env == "" }
