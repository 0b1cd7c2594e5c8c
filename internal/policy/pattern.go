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

// MatchString is that of regexp.Regexp.
func (p *pattern) MatchString(s string) bool {
	p.once.Do(func() { p.made = regexp.MustCompile(p.text) })
	return p.made.MatchString(s)
}
