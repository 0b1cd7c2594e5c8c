package docstest

import (
	"fmt"
	"strings"
)

// Block is one block of a page that is run.
type Block struct {
	Line   int    // where it starts, from 1
	Script string // as written, or the command that runs what is written
	Skip   string // the reason not to run it
	Needs  string // what must be there to run it
	Output string // what it must print
	Checks bool   // there is an output block, empty or not
}

// Blocks returns the blocks of a page that are run, in order. It fails for a page
// that would be silently misread: an open fence, an output block without a script,
// a skip without a reason, or a misspelled option.
func Blocks(page string) ([]Block, error) {
	var blocks []Block
	var f fenced
	line := 0
	after := false // nothing but white space since the last block that is run
	for text := range strings.Lines(page) {
		line++
		trimmed := strings.TrimSpace(text)
		switch {
		case f.open && trimmed == f.mark:
			f.open = false
			before := len(blocks)
			var err error
			if blocks, err = f.add(blocks, after); err != nil {
				return nil, err
			}
			after = len(blocks) > before
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

// runners say how what is not sh is run: what reads it from its input.
var runners = map[string]string{"sh": "", "js": "node --input-type=module -", "python": "python3 -"}

// heredoc ends what a runner reads. No block has such a line.
const heredoc = "END-OF-BLOCK"

func (f *fenced) add(blocks []Block, after bool) ([]Block, error) {
	language := f.language()
	option := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(f.info), language))
	runner, runs := runners[language]
	switch {
	case language == "bash" || language == "shell":
		return nil, fmt.Errorf("line %d: write sh for a block that is run, console or text for one that is not", f.line)
	case runs && (runner == "" || option != ""):
		b := Block{Line: f.line, Script: f.body.String()}
		if runner != "" {
			b.Script = runner + " <<'" + heredoc + "'\n" + b.Script + heredoc + "\n"
		}
		switch key, value, _ := strings.Cut(option, "="); {
		case option == "":
		case key == "skip" && value != "":
			b.Skip = value
		case key == "needs" && value != "":
			b.Needs = value
		default:
			return nil, fmt.Errorf("line %d: %q is neither skip=<reason> nor needs=<engine>", f.line, option)
		}
		return append(blocks, b), nil
	case language == "output":
		if !after || len(blocks) == 0 {
			return nil, fmt.Errorf("line %d: the output block follows no sh block", f.line)
		}
		last := &blocks[len(blocks)-1]
		last.Output, last.Checks = f.body.String(), true
	}
	return blocks, nil
}
