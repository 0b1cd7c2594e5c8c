package fake

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/cove-sandbox/cove"
)

// shell plays lines of sh and bash within one process. A part of a line that a
// real shell would fork for gets a shell and a process of its own.
type shell struct {
	p    *proc
	c    *call // how the shell itself was called
	pid  int   // $$, which a subshell inherits
	dir  string
	name string   // $0
	args []string // $1 and on

	vars   map[string]expand.Variable
	scopes []map[string]expand.Variable // what local hides, by function call
	funcs  map[string]*syntax.Stmt
	traps  map[string]string
	kids   []*proc // in the background
	last   *syntax.Stmt
	cfg    *expand.Config

	borrowed int // memory booked for the statement under way

	status      int // $?
	substituted int // the status of the last $(…)
	lastKid     int // $!
	flow        flow
	flowN       int // how many loops to leave
	depth       int
	guarded     int // above 0 a failure is only a condition
	errexit     bool
	nounset     bool
	noglob      bool
	pipefail    bool
}

// flow is what interrupts a list of statements.
type flow int

const (
	goOn flow = iota
	breakLoop
	continueLoop
	returnFunc
	exitShell
)

const (
	exitSyntax   = 2
	exitNoFork   = 254
	maxDepth     = 256  // of functions, eval and source
	maxKids      = 1024 // in the background; beyond that, ended ones are forgotten
	maxNesting   = 5000
	wordCost     = 16 // bytes of memory, beside the word itself
	nestingChars = "({`"
)

func newShell(c *call, name string, args []string) *shell {
	sh := &shell{
		p: c.p, c: c, pid: c.p.pid, dir: c.dir, name: name, args: args,
		vars: map[string]expand.Variable{}, funcs: map[string]*syntax.Stmt{},
	}
	for k, v := range c.env {
		sh.vars[k] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: v}
	}
	sh.set("PWD", sh.dir)
	sh.config()
	return sh
}

// clone is the shell of a forked process.
func (sh *shell) clone(p *proc) *shell {
	sub := *sh
	c := *sh.c
	c.p, c.in, c.out, c.err = p, stdio{p, 0}, stdio{p, 1}, stdio{p, 2}
	sub.p, sub.c = p, &c
	sub.args = slices.Clone(sh.args)
	sub.vars, sub.funcs = maps.Clone(sh.vars), maps.Clone(sh.funcs)
	sub.scopes, sub.traps, sub.kids, sub.last = nil, nil, nil, nil
	sub.guarded = 0
	sub.config()
	return &sub
}

var errNesting = errors.New("syntax error: too deeply nested")

// nesting is how deep a text could nest at most.
func nesting(text string) int {
	deep := 0
	for _, c := range nestingChars {
		deep += strings.Count(text, string(c))
	}
	return deep
}

// parse reads a script. The parser is recursive, so what could nest deeper
// than a stack is refused before.
func parse(text string) ([]*syntax.Stmt, error) {
	if nesting(text) > maxNesting {
		return nil, errNesting
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("syntax error: %w", err)
	}
	return f.Stmts, nil
}

// script plays a whole text as the program of this process.
func (sh *shell) script(text string) int {
	list, err := parse(text)
	if err != nil {
		sh.complain("%s", err)
		return exitSyntax
	}
	if len(list) == 1 {
		sh.last = list[0]
	}
	return sh.play(func() { sh.stmts(list) })
}

// play runs fn and then what is due at the end of the shell. The expansion
// library panics on trees that it does not know; that is the script's problem.
func (sh *shell) play(fn func()) (code int) {
	defer func() {
		if r := recover(); r != nil {
			sh.complain("cannot play this: %v", r)
			code = exitSyntax
		}
	}()
	fn()
	if text, ok := sh.traps["EXIT"]; ok {
		delete(sh.traps, "EXIT")
		sh.flow = goOn
		before := sh.status
		sh.evaluate(text)
		if sh.flow != exitShell {
			sh.status = before
		}
	}
	return sh.status
}

// evaluate plays a text in this shell.
func (sh *shell) evaluate(text string) {
	list, err := parse(text)
	if err != nil {
		sh.fail(exitSyntax, "%s", err)
		return
	}
	if sh.depth++; sh.depth > maxDepth {
		sh.fail(1, "maximum nesting exceeded")
		sh.flow = exitShell
		return
	}
	sh.stmts(list)
	sh.depth--
}

func (sh *shell) complain(format string, a ...any) {
	_, _ = fmt.Fprintf(sh.c.err, sh.label()+": "+format+"\n", a...)
}

func (sh *shell) label() string {
	if sh.name == "" {
		return "sh"
	}
	return strings.ReplaceAll(sh.name, "%", "%%")
}

// fail complains and sets $?.
func (sh *shell) fail(code int, format string, a ...any) {
	sh.complain(format, a...)
	sh.status = code
}

// fork plays body in a process of its own, which owns the descriptors.
func (sh *shell) fork(fds table, body func(sub *shell)) (*proc, error) {
	p, err := sh.p.m.fork(sh.p.job, sh.p, fds)
	if err != nil {
		fds.release()
		sh.noFork(err)
		return nil, err
	}
	sub := sh.clone(p)
	go func() { p.exit(sub.play(func() { body(sub) })) }()
	return p, nil
}

func (sh *shell) noFork(err error) {
	if !errors.Is(err, errDead) {
		sh.fail(exitNoFork, "fork: %s", wording(err))
	}
	sh.flow = exitShell
}

// await waits for a process and returns its status. Signals that the shell
// catches are handled later, as POSIX has it.
func (sh *shell) await(p *proc) int {
	select {
	case <-p.buried:
		return p.status.shell()
	case <-sh.p.dead:
		sh.flow = exitShell
		return 1
	}
}

// handleTraps plays what is due for signals that came.
func (sh *shell) handleTraps() {
	for _, sig := range sh.p.caughtSignals() {
		code := sh.status
		sh.evaluate(sh.traps[string(sig)])
		if sh.flow == exitShell {
			return
		}
		sh.status = code
	}
}

// runShell is sh and bash.
func runShell(c *call) int {
	sh := newShell(c, c.args[0], nil)
	rest := c.args[1:]
	line := false
	for len(rest) > 0 && len(rest[0]) > 1 && strings.ContainsAny(rest[0][:1], "-+") {
		opt := rest[0]
		rest = rest[1:]
		if opt == "--" {
			break
		}
		if strings.HasSuffix(opt, "o") && len(rest) > 0 {
			sh.option(rest[0], opt[0] == '-')
			rest = rest[1:]
		}
		line = line || strings.Contains(opt, "c")
		sh.options(opt)
	}
	switch {
	case line && len(rest) == 0:
		sh.complain("-c: option requires an argument")
		return exitSyntax
	case line:
		if len(rest) > 1 {
			sh.name, sh.args = rest[1], rest[2:]
		}
		return sh.script(rest[0])
	case len(rest) > 0:
		text, err := c.tree().slurp(c.path(rest[0]))
		if err != nil {
			sh.complain("%s: %s", rest[0], wording(err))
			return exitNotFound
		}
		sh.name, sh.args = rest[0], rest[1:]
		return sh.script(string(text))
	}
	return sh.play(sh.interactive)
}

// interactive plays lines from standard input as they come.
func (sh *shell) interactive() {
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	in := &lineReader{sh: sh}
	for list, err := range parser.InteractiveSeq(in) {
		switch {
		case err != nil:
			sh.fail(exitSyntax, "%v", err)
			return
		case parser.Incomplete():
			continue
		}
		sh.stmts(list)
		if sh.flow == exitShell {
			return
		}
	}
}

// lineReader gives one line at a time, so that the programs of a script on
// standard input can read what comes after them.
type lineReader struct {
	sh   *shell
	rest []byte
	deep int
}

func (r *lineReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.sh.p.terminal(0) != nil {
			_, _ = io.WriteString(r.sh.c.out, "$ ")
		}
		line, err := r.sh.readLine()
		if len(line) == 0 {
			return 0, err
		}
		if r.deep += nesting(string(line)); r.deep > maxNesting {
			return 0, errNesting
		}
		r.rest = line
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// readLine reads up to a newline of standard input and not one byte more.
func (sh *shell) readLine() ([]byte, error) {
	f := sh.p.descriptor(0)
	if f == nil {
		return nil, syscall.EBADF
	}
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxScript {
		n, err := f.read(sh.p, one)
		if n > 0 {
			line = append(line, one[0])
		}
		if err != nil {
			return line, err
		}
		if one[0] == '\n' {
			break
		}
	}
	return line, sh.p.step() // what came while paused is acted upon later
}

// options sets the flags of a word such as -eu.
func (sh *shell) options(word string) {
	on := word[0] == '-'
	for _, c := range word[1:] {
		switch c {
		case 'e':
			sh.errexit = on
		case 'u':
			sh.nounset = on
		case 'f':
			sh.noglob = on
		}
	}
	sh.config()
}

// option sets what has a long name.
func (sh *shell) option(name string, on bool) {
	switch name {
	case "errexit":
		sh.errexit = on
	case "nounset":
		sh.nounset = on
	case "noglob":
		sh.noglob = on
	case "pipefail":
		sh.pipefail = on
	}
	sh.config()
}

// set assigns a plain variable and leaves its attributes.
func (sh *shell) set(name, value string) {
	v := sh.vars[name]
	v.Set, v.Kind, v.Str, v.List = true, expand.String, value, nil
	_ = sh.store(name, v) // a shell that is out of memory ends at its next step
}

// special returns the parameters that are not variables.
func (sh *shell) special(name string) (expand.Variable, bool) {
	var text string
	switch name {
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: sh.args}, true
	case "#":
		text = strconv.Itoa(len(sh.args))
	case "?":
		text = strconv.Itoa(sh.status)
	case "$":
		text = strconv.Itoa(sh.pid)
	case "!":
		if sh.lastKid == 0 {
			return expand.Variable{}, true
		}
		text = strconv.Itoa(sh.lastKid)
	case "PPID":
		text = strconv.Itoa(sh.p.parent())
	case "0":
		text = sh.name
	case "-":
		text = "hB"
	default:
		n, err := strconv.Atoi(name)
		if err != nil {
			// Without an answer here the library would ask the host's user list.
			return expand.Variable{Set: true, Kind: expand.String}, strings.HasPrefix(name, "HOME ")
		}
		if n < 1 || n > len(sh.args) {
			return expand.Variable{}, true
		}
		text = sh.args[n-1]
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: text}, true
}

// trapName is a signal or EXIT as trap takes it.
func trapName(word string) (string, error) {
	if word == "0" || strings.EqualFold(word, "EXIT") {
		return "EXIT", nil
	}
	sig, err := cove.ParseSignal(word)
	return string(sig), err
}
