package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// block is a table of a page: the flags that make it stand above it.
var block = regexp.MustCompile("(?s)<!-- clustersim: ([^\n]*?) -->\n(.*?)<!-- clustersim end -->\n")

// rewrite makes the tables of a page anew.
func rewrite(name string, stderr io.Writer) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var failed error
	text = block.ReplaceAllFunc(text, func(was []byte) []byte {
		flags := string(block.FindSubmatch(was)[1])
		made, err := tableOf(flags, stderr)
		if err != nil {
			failed = fmt.Errorf("%s: %w", flags, err)
			return was
		}
		return made
	})
	if failed != nil {
		return failed
	}
	return os.WriteFile(name, text, 0o644) //nolint:gosec // a page of documentation
}

// tableOf returns a block with its table.
func tableOf(flags string, stderr io.Writer) ([]byte, error) {
	var b bytes.Buffer
	_, _ = fmt.Fprintf(&b, "<!-- clustersim: %s -->\n", flags)
	o, err := parse(strings.Fields(flags), stderr)
	if err != nil {
		return nil, err
	}
	made := table
	if o.replay != "" {
		made = replay
	}
	if err := made(o, &b); err != nil {
		return nil, err
	}
	b.WriteString("<!-- clustersim end -->\n")
	return b.Bytes(), nil
}
