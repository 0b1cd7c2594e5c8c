package docstest

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// GoBlock is one go block of a page.
type GoBlock struct {
	Line int    // where it starts, from 1
	File string // the file that it is a part of, or ""
	Text string
}

// GoBlocks returns the go blocks of a page in order.
func GoBlocks(page string) ([]GoBlock, error) {
	var blocks []GoBlock
	var f fenced
	line := 0
	for text := range strings.Lines(page) {
		line++
		trimmed := strings.TrimSpace(text)
		switch {
		case f.open && trimmed == f.mark:
			f.open = false
			if f.language() == "go" {
				file := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(f.info), "go"))
				blocks = append(blocks, GoBlock{Line: f.line, File: file, Text: f.body.String()})
			}
		case f.open:
			f.body.WriteString(strings.TrimPrefix(text, f.indent))
		case strings.HasPrefix(trimmed, "```"):
			f = begin(trimmed, text, line)
		}
	}
	if f.open {
		return nil, fmt.Errorf("line %d: the block is never closed", f.line)
	}
	return blocks, nil
}

// begin starts to read a block at its first line.
func begin(trimmed, text string, line int) fenced {
	f := fenced{open: true, line: line, mark: trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]}
	f.info = strings.TrimPrefix(trimmed, f.mark)
	f.indent, _, _ = strings.Cut(text, "`")
	return f
}

// Check reports a block that is not what it says: a part of source, the text of
// the file that it names, with … for what is left out; or, where it names none,
// Go that parses.
func (b GoBlock) Check(source string) error {
	if b.File != "" {
		if !Match(Any+"\n"+strings.TrimSpace(b.Text)+"\n"+Any, source) {
			return fmt.Errorf("line %d: it is not a part of %s as that is now", b.Line, b.File)
		}
		return nil
	}
	for _, whole := range []string{b.Text, "package p\n" + b.Text, "package p\nfunc _() {\n" + b.Text + "\n}"} {
		if _, err := parser.ParseFile(token.NewFileSet(), "", whole, parser.SkipObjectResolution); err == nil {
			return nil
		}
	}
	return fmt.Errorf("line %d: it does not parse as Go; name the file that it is a part of, or mend it", b.Line)
}
