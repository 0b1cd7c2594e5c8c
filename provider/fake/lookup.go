package fake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// defaultPath is where programs are looked for.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// The exit codes for what cannot be run, as a shell has them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// program behaves like a small Unix program and returns its exit code.
type program func(*call) int

// call is one run of a program.
type call struct {
	p    *proc
	args []string // args[0] is the name it was called by
	env  map[string]string
	dir  string
	in   io.Reader
	out  io.Writer
	err  io.Writer
	deep int // how often a program became another
}

// maxBecome bounds how often a process may become another program.
const maxBecome = 32

func newCall(p *proc, args []string, env map[string]string, dir string) *call {
	return &call{p: p, args: args, env: env, dir: dir, in: stdio{p, 0}, out: stdio{p, 1}, err: stdio{p, 2}}
}

// complain writes a line to standard error and returns 1.
func (c *call) complain(format string, a ...any) int {
	_, _ = fmt.Fprintf(c.err, path.Base(c.args[0])+": "+format+"\n", a...)
	return 1
}

// fault is complain about a file.
func (c *call) fault(name string, err error) int {
	if errors.Is(err, errDead) {
		return 1
	}
	return c.complain("%s: %s", name, wording(err))
}

// path makes a name absolute.
func (c *call) path(name string) string { return absolute(c.dir, name) }

// tree is short for the files of the sandbox.
func (c *call) tree() *tree { return c.p.m.tree }

// run is the same process with another program.
func (c *call) run(args []string) int {
	next := *c
	next.args = args
	if next.deep++; next.deep > maxBecome {
		return c.complain("too many levels of programs that run programs")
	}
	return c.p.m.lookup(&next)
}

// environ is the environment as env prints it.
func (c *call) environ() []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(c.env)) {
		list = append(list, k+"="+c.env[k])
	}
	return list
}

// lookup finds and runs what a call names.
func (m *machine) lookup(c *call) int {
	found := m.resolve(c.args[0], cmp.Or(c.env["PATH"], defaultPath), c.dir)
	if found.run == nil {
		_, _ = fmt.Fprintf(c.err, "%s: %s\n", c.args[0], found.why)
		return found.code
	}
	return found.run(c)
}

// resolved is a program, or the reason why there is none.
type resolved struct {
	run  program
	at   string // where it is
	code int
	why  string
}

// resolve finds a program by its name, in path unless the name has a slash.
func (m *machine) resolve(name, searched, dir string) resolved {
	if strings.Contains(name, "/") {
		return m.executable(absolute(dir, name))
	}
	miss := resolved{code: exitNotFound, why: "command not found"}
	for d := range strings.SplitSeq(searched, ":") {
		if d == "" {
			continue
		}
		found := m.executable(absolute(dir, d) + "/" + name)
		if found.run != nil {
			return found
		}
		if found.code == exitNotExecutable {
			miss = found
		}
	}
	return miss
}

// executable looks at one file.
func (m *machine) executable(name string) resolved {
	var found resolved
	err := m.tree.do(func() error {
		fi, p, err := m.tree.stat(name, true)
		switch {
		case err != nil:
			return err
		case fi.IsDir():
			return syscall.EISDIR
		case fi.Mode().Perm()&0o111 == 0:
			return syscall.EACCES
		case p.on == nil:
			found = resolved{run: m.tools[path.Base(p.abs)], at: p.abs}
		default:
			found = resolved{run: script(name), at: p.abs}
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return resolved{code: exitNotFound, why: "No such file or directory"}
	case err != nil:
		return resolved{code: exitNotExecutable, why: wording(err)}
	}
	return found
}

// script runs a file by the interpreter that its first line names.
func script(name string) program {
	return func(c *call) int {
		text, err := c.tree().slurp(name)
		if err != nil {
			_ = c.fault(name, err)
			return exitNotExecutable
		}
		if bytes.IndexByte(text, 0) >= 0 {
			_ = c.fault(name, syscall.ENOEXEC)
			return exitNotExecutable
		}
		words := []string{"sh"}
		if line, _, _ := strings.Cut(string(text), "\n"); strings.HasPrefix(line, "#!") {
			words = strings.Fields(line[2:])
		}
		if len(words) > 1 && path.Base(words[0]) == "env" {
			words = words[1:]
		}
		if len(words) == 0 {
			words = []string{"sh"}
		}
		if strings.Contains(c.args[0], "/") {
			return c.run(slices.Concat(words, c.args))
		}
		return c.run(slices.Concat(words, []string{name}, c.args[1:]))
	}
}
