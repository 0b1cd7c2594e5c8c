package docstest

import (
	"fmt"
	"strings"
)

// Block is one sh block of a page.
type Block struct {
	Line   int    // where it starts, from 1
	Script string // as written
	Skip   string // the reason not to run it
	Output string // what it must print
	Checks bool   // there is an output block, empty or not
}

// Blocks returns the sh blocks of a page in order. It fails for a page that
// would be silently misread: an open fence, an output block without a script,
// a skip without a reason, or a misspelled option.
func Blocks(page string) ([]Block, error) {
	var blocks []Block
	var f fenced
	line := 0
	after := false // nothing but white space since the last sh block
	for text := range strings.Lines(page) {
		line++
		trimmed := strings.TrimSpace(text)
		switch {
		case f.open && trimmed == f.mark:
			f.open = false
			var err error
			if blocks, err = f.add(blocks, after); err != nil {
				return nil, err
			}
			after = f.language() == "sh"
		case f.open:
			f.body.WriteString(strings.TrimPrefix(text, f.indent))
		case strings.HasPrefix(trimmed, "```"):
			f = begin(trimmed, text, line)
		case trimmed != "":
			after = false
		}
	}
	if f.open {
		return nil, fmt.Errorf("line %d: the block is never closed", f.line)
	}
	return blocks, nil
}

// fenced is a block while it is read.
type fenced struct {
	open   bool
	line   int
	mark   string // the backticks
	info   string // what follows them
	indent string
	body   strings.Builder
}

func (f *fenced) language() string {
	lang, _, _ := strings.Cut(strings.TrimSpace(f.info), " ")
	return lang
}

func (f *fenced) add(blocks []Block, after bool) ([]Block, error) {
	switch f.language() {
	case "bash", "shell":
		return nil, fmt.Errorf("line %d: write sh for a block that is run, console or text for one that is not", f.line)
	case "sh":
		b := Block{Line: f.line, Script: f.body.String()}
		if option := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(f.info), "sh")); option != "" {
			reason, ok := strings.CutPrefix(option, "skip=")
			if !ok || reason == "" {
				return nil, fmt.Errorf("line %d: %q is not skip=<reason>", f.line, option)
			}
			b.Skip = reason
		}
		return append(blocks, b), nil
	case "output":
		if !after || len(blocks) == 0 {
			return nil, fmt.Errorf("line %d: the output block follows no sh block", f.line)
		}
		last := &blocks[len(blocks)-1]
		last.Output, last.Checks = f.body.String(), true
	}
	return blocks, nil
}
