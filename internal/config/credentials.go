package config

import (
	"reflect"
	"strings"
)

// Credentials returns every secret that the settings hold, for who must take
// them out of texts. Of one such as "Bearer x" it returns the x too.
func (c Config) Credentials() []string {
	var all []string
	add := func(s Secret) {
		text := s.Reveal()
		if text == "" {
			return
		}
		all = append(all, text)
		if _, last, ok := strings.Cut(text, " "); ok {
			all = append(all, strings.TrimSpace(last))
		}
	}
	for _, s := range settings() {
		if v, ok := reflect.TypeAssert[Secret](s.field(&c)); ok {
			add(v)
		}
	}
	for _, name := range c.Secrets.Names() {
		add(c.Secrets[name].Value)
	}
	return all
}
