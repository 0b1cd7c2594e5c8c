// Package analyze finds the imports of Python code, and for runs over data what else
// stands in it, by the interpreter that would run it: a small program, imports.py,
// facts.py and what they stand on, is started in a sandbox and reads the code with
// that interpreter's own parser.
//
// One process serves many requests, each in a child of its own that has little
// memory and little time. What breaks the parser, or keeps it too long, is told in
// the report as not read.
//
// The package runs none of the code it is given and judges none of what it finds.
// It must be given sandboxes in which no code of a caller has run or ever will:
// such code could answer in place of the parser.
package analyze
