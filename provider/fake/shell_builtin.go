package fake

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/cove-sandbox/cove"
)

// builtin returns a command that the shell itself carries out, or nil.
func builtin(name string) func(*shell, []string) int {
	switch name {
	case ":":
		return func(*shell, []string) int { return 0 }
	case "echo", "printf", "test", "[", "true", "false", "pwd", "kill":
		return (*shell).tool
	case "cd":
		return (*shell).chdir
	case "exit", "return", "break", "continue":
		return (*shell).leave
	case "shift":
		return (*shell).shift
	case "set":
		return (*shell).setOptions
	case "unset":
		return (*shell).unset
	case "eval":
		return func(sh *shell, args []string) int {
			sh.status = 0
			sh.evaluate(strings.Join(args[1:], " "))
			return sh.status
		}
	case ".", "source":
		return (*shell).source
	case "exec":
		return (*shell).exec
	case "command", "type":
		return (*shell).describe
	case "read":
		return (*shell).read
	case "trap":
		return (*shell).trap
	case "wait":
		return (*shell).wait
	case "umask", "ulimit", "shopt", "hash":
		return func(*shell, []string) int { return 0 }
	}
	return nil
}

// tool runs a program without a process of its own.
func (sh *shell) tool(args []string) int {
	return sh.p.m.tools[args[0]](newCall(sh.p, args, nil, sh.dir))
}

func (sh *shell) chdir(args []string) int {
	to := sh.vars["HOME"].Str
	if rest := slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return a == "-P" || a == "-L" || a == "--" }); len(rest) > 0 {
		to = rest[0]
	}
	if to == "-" {
		to = sh.vars["OLDPWD"].Str
	}
	t := sh.p.m.tree
	var at string
	err := t.do(func() error {
		fi, p, err := t.stat(absolute(sh.dir, to), true)
		if err == nil && !fi.IsDir() {
			err = syscall.ENOTDIR
		}
		at = p.abs
		return err
	})
	if err != nil {
		sh.complain("cd: %s: %s", to, wording(err))
		return 1
	}
	sh.set("OLDPWD", sh.dir)
	sh.dir = at
	sh.set("PWD", at)
	return 0
}

// leave is exit, return, break and continue.
func (sh *shell) leave(args []string) int {
	n, code := 1, sh.status
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil {
			sh.complain("%s: %s: numeric argument required", args[0], args[1])
			n = exitSyntax
		}
		code = n & 0xff
	}
	switch args[0] {
	case "exit":
		sh.flow = exitShell
	case "return":
		sh.flow = returnFunc
	default:
		sh.flow, sh.flowN, code = breakLoop, max(1, n), 0
		if args[0] == "continue" {
			sh.flow = continueLoop
		}
	}
	return code
}

func (sh *shell) shift(args []string) int {
	n := 1
	if len(args) > 1 {
		n, _ = strconv.Atoi(args[1])
	}
	if n < 0 || n > len(sh.args) {
		sh.complain("shift: can't shift that many")
		return 1
	}
	sh.args = sh.args[n:]
	return 0
}

func (sh *shell) setOptions(args []string) int {
	rest := args[1:]
	for len(rest) > 0 && len(rest[0]) > 1 && strings.ContainsAny(rest[0][:1], "-+") {
		opt := rest[0]
		rest = rest[1:]
		if opt == "--" {
			sh.args = rest
			return 0
		}
		if strings.HasSuffix(opt, "o") && len(rest) > 0 {
			sh.option(rest[0], opt[0] == '-')
			rest = rest[1:]
		}
		sh.options(opt)
	}
	if len(rest) > 0 {
		sh.args = rest
	}
	return 0
}

func (sh *shell) unset(args []string) int {
	for _, name := range args[1:] {
		if sh.vars[name].ReadOnly {
			sh.complain("unset: %s: cannot unset: readonly variable", name)
			return 1
		}
		delete(sh.vars, name)
		delete(sh.funcs, name)
	}
	return 0
}

func (sh *shell) source(args []string) int {
	if len(args) < 2 {
		sh.complain("%s: filename argument required", args[0])
		return exitSyntax
	}
	text, err := sh.p.m.tree.slurp(absolute(sh.dir, args[1]))
	if err != nil {
		sh.complain("%s: %s", args[1], wording(err))
		return 1
	}
	sh.status = 0
	sh.evaluate(string(text))
	if sh.flow == returnFunc {
		sh.flow = goOn
	}
	return sh.status
}

// exec becomes another program, with the shell's descriptors.
func (sh *shell) exec(args []string) int {
	if len(args) < 2 {
		return 0
	}
	found := sh.p.m.resolve(args[1], sh.vars["PATH"].Str, sh.dir)
	if found.run == nil {
		sh.complain("exec: %s: %s", args[1], found.why)
		sh.flow = exitShell
		return found.code
	}
	sh.traps = nil
	sh.become(found.run, args[1:], sh.exported())
	return sh.status
}

// describe is command and type.
func (sh *shell) describe(args []string) int {
	rest := args[1:]
	ask := args[0] == "type"
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		ask = ask || strings.ContainsAny(rest[0], "vV")
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0:
		return 0
	case !ask:
		if run := builtin(rest[0]); run != nil {
			return run(sh, rest)
		}
		sh.external(rest, false)
		return sh.status
	}
	for _, name := range rest {
		at := name
		if sh.funcs[name] == nil && builtin(name) == nil {
			found := sh.p.m.resolve(name, sh.vars["PATH"].Str, sh.dir)
			if found.run == nil {
				if args[0] == "type" {
					sh.complain("type: %s: not found", name)
				}
				return 1
			}
			at = found.at
		}
		if args[0] == "type" {
			at = name + " is " + at
		}
		_, _ = fmt.Fprintln(sh.c.out, at)
	}
	return 0
}

// read takes one line of standard input apart.
func (sh *shell) read(args []string) int {
	rest, raw := args[1:], false
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		raw = raw || strings.Contains(rest[0], "r")
		rest = rest[1:]
	}
	if len(rest) == 0 {
		rest = []string{"REPLY"}
	}
	line, err := sh.readLine()
	line = bytes.TrimSuffix(line, []byte("\n"))
	parts := expand.ReadFields(sh.cfg, string(line), len(rest), raw)
	for i, name := range rest {
		value := ""
		if i < len(parts) {
			value = parts[i]
		}
		if !syntax.ValidName(name) {
			sh.complain("read: `%s': not a valid identifier", name)
			return 1
		}
		sh.set(name, value)
	}
	return oneIf(err != nil)
}

func (sh *shell) trap(args []string) int {
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	switch len(rest) {
	case 0:
		for _, name := range slices.Sorted(maps.Keys(sh.traps)) {
			_, _ = fmt.Fprintf(sh.c.out, "trap -- '%s' %s\n", sh.traps[name], name)
		}
		return 0
	case 1:
		rest = []string{"-", rest[0]}
	}
	if sh.traps == nil {
		sh.traps = map[string]string{}
	}
	for _, word := range rest[1:] {
		name, err := trapName(word)
		if err != nil {
			sh.complain("trap: %s: invalid signal specification", word)
			return 1
		}
		delete(sh.traps, name)
		if rest[0] != "-" {
			sh.traps[name] = rest[0]
		}
		if name != "EXIT" {
			sh.p.handle(cove.Signal(name), rest[0] == "", rest[0] != "" && rest[0] != "-")
		}
	}
	return 0
}

// wait waits for children. A signal that the shell catches ends it.
func (sh *shell) wait(args []string) int {
	kids := sh.kids
	if len(args) > 1 {
		kids = nil
		for _, word := range args[1:] {
			i := slices.IndexFunc(sh.kids, func(p *proc) bool { return strconv.Itoa(p.pid) == word })
			if i < 0 {
				sh.complain("wait: pid %s is not a child of this shell", word)
				return exitNotFound
			}
			kids = append(kids, sh.kids[i])
		}
	}
	code := 0
	for _, kid := range kids {
		for waiting := true; waiting; {
			select {
			case <-kid.buried:
				waiting = false
				if len(args) > 1 {
					code = kid.status.shell()
				}
			case <-sh.p.dead:
				sh.flow = exitShell
				return 1
			case <-sh.p.poke:
				if sigs := sh.p.caughtNow(); len(sigs) > 0 {
					return 128 + sigs[0].Number()
				}
			}
		}
	}
	if len(args) == 1 {
		sh.kids = nil
	}
	return code
}
