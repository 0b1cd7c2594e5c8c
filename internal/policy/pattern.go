package policy

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed: a
// process that judges no command must not pay for all of them at its start.
type pattern struct {
	text string
	once sync.Once
	made *regexp.Regexp // set once
}

// newPattern returns a pattern. What is not a regular expression panics at the
// first use; a test compiles every one of them.
func newPattern(text string) *pattern { return &pattern{text: text} }

func (p *pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.made = regexp.MustCompile(p.text) })
	return p.made
}

// MatchString is that of regexp.Regexp, as are the other methods.
func (p *pattern) MatchString(s string) bool { return p.get().MatchString(s) }

// FindString is that of regexp.Regexp.
func (p *pattern) FindString(s string) string { return p.get().FindString(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (p *pattern) FindStringSubmatch(s string) []string { return p.get().FindStringSubmatch(s) }

// FindAllString is that of regexp.Regexp.
func (p *pattern) FindAllString(s string, n int) []string { return p.get().FindAllString(s, n) }

// ReplaceAllString is that of regexp.Regexp.
func (p *pattern) ReplaceAllString(s, with string) string { return p.get().ReplaceAllString(s, with) }
