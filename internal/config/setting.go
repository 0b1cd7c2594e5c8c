package config

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
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
	Secret  bool     // its value is never shown
	OneOf   []string // the words it may be, or nil for any

	unit     string
	min, max string
	schemes  []string
	index    []int
	typ      reflect.Type
}

// Settings yields every setting in the order of [Config].
func Settings() iter.Seq[Setting] { return slices.Values(settings()) }

// settings are read from the tags once, by every process at its start: what
// follows is written to be quick. Nobody changes them.
var settings = sync.OnceValue(func() []Setting {
	return appendSettings(make([]Setting, 0, 128), reflect.TypeFor[Config](), "", "", nil)
})

func appendSettings(all []Setting, t reflect.Type, prefix, section string, path []int) []Setting {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		index := append(slices.Clip(path), i)
		if f.Type.Kind() == reflect.Struct {
			all = appendSettings(all, f.Type, f.Tag.Get("key")+".", f.Tag.Get("doc"), index)
			continue
		}
		all = append(all, settingOf(f, prefix, section, index))
	}
	return all
}

func settingOf(f reflect.StructField, prefix, section string, index []int) Setting {
	s := Setting{Section: section, Secret: f.Type == reflect.TypeFor[Secret](), index: index, typ: f.Type}
	for name, text := range tags(f.Tag) {
		switch name {
		case "env":
			s.Env = text
		case "alias":
			s.Alias = text
		case "key":
			s.Key = prefix + text
		case "flag":
			s.Flag = text
		case "default":
			s.Default = text
		case "shown":
			s.Shown = text
		case "doc":
			s.Doc = text
		case "oneof":
			s.OneOf = strings.Fields(text)
		case "unit":
			s.unit = text
		case "min":
			s.min = text
		case "max":
			s.max = text
		case "url":
			s.schemes = strings.Fields(text)
		}
	}
	return s
}

// tags yields all that a tag says. The only thing in it that is written with a
// backslash is a quote.
func tags(tag reflect.StructTag) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for rest := string(tag); ; {
			name, after, ok := strings.Cut(strings.TrimLeft(rest, " "), `:"`)
			text, next, closed := strings.Cut(after, `"`)
			if !ok || !closed {
				return
			}
			for strings.HasSuffix(text, `\`) {
				more, last, _ := strings.Cut(next, `"`)
				text, next = strings.TrimSuffix(text, `\`)+`"`+more, last
			}
			if !yield(name, text) {
				return
			}
			rest = next
		}
	}
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
