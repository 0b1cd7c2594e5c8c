// Package fact has the words in which what stands in Python code is told to a
// policy: who reads code writes them, and who judges it reads them.
//
// A fact says what is written and where, each kind of it once, at its first place.
// Whether it may stand there is not said: the package finds and judges nothing.
package fact

import "github.com/cove-sandbox/cove"

// Report is all that a policy hears of a piece of code.
type Report struct {
	Facts  []Fact          // in the order of the code
	Syntax *cove.CodeError // the code cannot be parsed, and so cannot run; there are no facts
	Unread string          // why nobody could look, as that it is too large; the facts do not tell all
}

// Kind says what a fact is about.
type Kind string

// The kinds of facts.
const (
	Import    Kind = "import"    // Of is imported whole
	From      Kind = "from"      // Name is taken from Of; "*" is all. Of begins with "." where it is relative
	Name      Kind = "name"      // a variable is used, set or deleted. Of is what an import, or the run, binds it to
	Special   Kind = "special"   // __Name__ stands where neither a variable nor an attribute is: a parameter, a keyword
	Define    Kind = "define"    // a class has a method __Name__
	Attribute Kind = "attribute" // Name of something; Of is what that is, where it begins with an import
	Text      Kind = "text"      // Name is a word of the form __x__ in a literal
	Word      Kind = "word"      // Name is a whole literal that begins with to_
	Method    Kind = "method"    // Name is a literal that is handed to what calls methods by name, such as apply
	Option    Kind = "option"    // Name is a setting of pandas that is changed
	Query     Kind = "query"     // a text that pandas is to evaluate cannot be read: Name is Any or Unparsed
)

// Words in place of a name.
const (
	Any      = "?" // only running the code would tell
	Unparsed = "!" // it is not an expression
)

// Fact is one thing that stands in code.
type Fact struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`
	Of     string `json:"of,omitempty"`
	Line   int    `json:"line"`   // from 1; of the literal, for what stands in one
	Column int    `json:"column"` // in bytes, from 1

	Builtin bool `json:"builtin,omitempty"` // a name that this Python has without an import
	Last    bool `json:"last,omitempty"`    // it is used as a value, not to get at one of its attributes
	Own     bool `json:"own,omitempty"`     // the attribute is one of self or cls
	Literal bool `json:"literal,omitempty"` // the attribute is named by a literal, as in getattr(x, "name")
	// Called says that an attribute is called right there: Args counts what is
	// handed over by position, Keywords are the names of the rest, and Spread says
	// that * or ** hand over more.
	Called   bool     `json:"called,omitempty"`
	Args     int      `json:"args,omitempty"`
	Keywords []string `json:"keywords,omitempty"`
	Spread   bool     `json:"spread,omitempty"`
}
