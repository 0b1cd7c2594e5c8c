package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cove-sandbox/cove"
)

// render returns a value in words that parse reads back; secrets as a mask and
// addresses without their password.
func render(s Setting, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		if len(s.schemes) > 0 {
			return redacted(x)
		}
		return x
	case Secret:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	case float64:
		if x == 0 {
			return ""
		}
		return strconv.FormatFloat(x, 'f', -1, 64)
	case time.Duration:
		return shortDuration(x)
	case cove.Bytes:
		if x == 0 {
			return ""
		}
		if s.unit == "b" || x%cove.KiB == 0 {
			return x.String()
		}
		return x.String() + "b"
	case []string:
		return strings.Join(x, ",")
	case []cove.Volume:
		return volumeList(x)
	case Flavors:
		return strings.Join(x.Names(), ",")
	case Policies:
		return strings.Join(x.Names(), ",")
	case Imports:
		return strings.Join(x.Names(), ",")
	case Secrets:
		return strings.Join(x.Names(), ",")
	case Regions:
		return strings.Join(x.Names(), ",")
	}
	if v.IsZero() && s.Default == "" {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return mask
	}
	return redactedURL(u)
}

// redactedURL shows where an address leads and nothing that may be a secret: a
// user can be a token, and so can any value of the query.
func redactedURL(u *url.URL) string {
	const hidden = "xxxxx"
	shown := *u
	if u.User != nil {
		name := ""
		if u.User.Username() != "" {
			name = hidden
		}
		shown.User = url.User(name)
		if _, has := u.User.Password(); has {
			shown.User = url.UserPassword(name, hidden)
		}
	}
	if u.Opaque != "" {
		shown.Opaque = hidden
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		if key, value, ok := strings.Cut(part, "="); ok && value != "" {
			parts[i] = key + "=" + hidden
		} else if !ok && part != "" {
			parts[i] = hidden
		}
	}
	shown.RawQuery = strings.Join(parts, "&")
	if u.Fragment != "" {
		shown.Fragment, shown.RawFragment = hidden, ""
	}
	return shown.String()
}

// shortDuration is Go's form without the zeros: 30m, not 30m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func volumeList(volumes []cove.Volume) string {
	words := make([]string, len(volumes))
	for i, v := range volumes {
		words[i] = v.Source + ":" + v.Target
		if !v.Write {
			words[i] += ":ro"
		}
	}
	return strings.Join(words, ",")
}

// Value is one setting as --print-config shows it.
type Value struct {
	Name   string `json:"name"` // in the environment; its key for one that only the file can hold
	Key    string `json:"key,omitempty"`
	Value  string `json:"value"`
	Origin Source `json:"origin"`
	From   string `json:"from,omitempty"` // the name that was written, and its place in the file
}

// Values returns every setting with its value and where that came from, secrets
// masked.
func (c Config) Values() []Value {
	var all []Value
	for _, s := range settings() {
		o := c.Origin(s.name())
		from := o.Name
		if o.Place != "" {
			from = o.Place
		}
		all = append(all, Value{Name: s.name(), Key: s.Key, Value: render(s, s.field(&c)), Origin: o.Source, From: from})
	}
	return all
}

// PrintJSON writes Values.
func (c Config) PrintJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(c.Values())
}

// PrintYAML writes all settings in the form of the settings file, each with
// where its value came from. Settings without a value are left out as comments.
func (c Config) PrintYAML(w io.Writer) error {
	var b strings.Builder
	section := ""
	for _, s := range settings() {
		group, key, inGroup := strings.Cut(s.Key, ".")
		if !inGroup {
			group, key = "", s.Key
		}
		if group != section && group != "" {
			fmt.Fprintf(&b, "%s:\n", group)
		}
		section = group
		indent := ""
		if inGroup {
			indent = "  "
		}
		c.printSetting(&b, s, indent, key)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Config) printSetting(b *strings.Builder, s Setting, indent, key string) {
	o := c.Origin(s.name())
	from := string(o.Source)
	if o.Place != "" {
		from += " " + o.Place
	} else if o.Name != "" {
		from += " " + o.Name
	}
	text := render(s, s.field(&c))
	switch {
	case s.Key == "":
		fmt.Fprintf(b, "# %s=%s  # %s\n", s.Env, text, from)
	case s.onlyInFile() && text != "":
		b.WriteString(key + ":  # " + from + "\n" + indented(s.field(&c).Interface()))
	case text == "":
		fmt.Fprintf(b, "%s# %s:  # %s: %s\n", indent, key, from, s.shownDefault())
	default:
		fmt.Fprintf(b, "%s%s: %s  # %s\n", indent, key, scalar(s, text), from)
	}
}

// scalar quotes a text where YAML would read something else.
func scalar(s Setting, text string) string {
	if s.typ.Kind() != reflect.String {
		return text
	}
	quoted, err := yaml.Marshal(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return strings.TrimSpace(string(quoted))
}

func indented(tree any) string {
	var b strings.Builder
	switch t := tree.(type) {
	case Flavors:
		for _, name := range t.Names() {
			fmt.Fprintf(&b, "  %s: {cpus: %s, memory: %s", name, strconv.FormatFloat(t[name].CPUs, 'f', -1, 64), t[name].Memory)
			if t[name].PIDs != 0 {
				fmt.Fprintf(&b, ", pids: %d", t[name].PIDs)
			}
			b.WriteString("}\n")
		}
	case Policies:
		for _, name := range t.Names() {
			b.WriteString("  " + name + ": " + t[name].inline() + "\n")
		}
	case Imports:
		for _, name := range t.Names() {
			b.WriteString("  " + name + ": [" + strings.Join(t[name], ", ") + "]\n")
		}
	case Secrets:
		for _, name := range t.Names() {
			b.WriteString("  " + name + ": " + t[name].inline() + "\n")
		}
	case Regions:
		for _, name := range t.Names() {
			b.WriteString("  " + name + ": " + t[name].inline() + "\n")
		}
	}
	return b.String()
}

// inline is a policy as the file has it, in one line.
func (c CommandPolicy) inline() string {
	var parts []string
	for _, l := range []struct {
		key   string
		words []string
	}{{"allow", c.Allow}, {"deny", c.Deny}, {"ask", c.Ask}, {"helpers", c.Helpers}} {
		if len(l.words) > 0 {
			parts = append(parts, l.key+": ["+strings.Join(l.words, ", ")+"]")
		}
	}
	if c.Offline {
		parts = append(parts, "network: none")
	}
	if c.Limits.Wall > 0 {
		parts = append(parts, "timeout: "+shortDuration(c.Limits.Wall))
	}
	if c.Limits.Output > 0 {
		parts = append(parts, "max_output: "+c.Limits.Output.String()+"b")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// String is PrintYAML, so that printing a Config shows no secret.
func (c Config) String() string {
	var b strings.Builder
	_ = c.PrintYAML(&b) // a strings.Builder takes everything
	return b.String()
}

// GoString is String, so that %#v shows no more.
func (c Config) GoString() string { return c.String() }

// LogValue shows what somebody set, for log/slog.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, v := range c.Values() {
		if v.Origin != FromDefault {
			attrs = append(attrs, slog.String(v.Name, v.Value))
		}
	}
	return slog.GroupValue(attrs...)
}
