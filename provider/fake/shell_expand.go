package fake

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// config prepares the expansion library for the options that are set now.
func (sh *shell) config() {
	sh.cfg = &expand.Config{Env: variables{sh}, CmdSubst: sh.substitute, NoUnset: sh.nounset}
	sh.cfg.ProcSubst = func(*syntax.ProcSubst) (string, error) {
		return "", errors.New("process substitution is not played here; use a pipe or a file")
	}
	if !sh.noglob {
		sh.cfg.ReadDir2 = sh.globDir
	}
}

// variables shows the shell's variables to the expansion library.
type variables struct{ sh *shell }

func (v variables) Get(name string) expand.Variable {
	if x, ok := v.sh.special(name); ok {
		return x
	}
	return v.sh.vars[name]
}

func (v variables) Each(fn func(string, expand.Variable) bool) {
	for name, x := range v.sh.vars {
		if !fn(name, x) {
			return
		}
	}
}

func (v variables) Set(name string, x expand.Variable) error {
	old := v.sh.vars[name]
	if old.ReadOnly {
		return errors.New(name + ": readonly variable")
	}
	x.Exported = x.Exported || old.Exported
	return v.sh.store(name, x)
}

// store sets a variable and books what it holds.
func (sh *shell) store(name string, v expand.Variable) error {
	grown := size(v) - size(sh.vars[name])
	sh.vars[name] = v
	if grown < 0 {
		sh.p.refund(-grown)
		return nil
	}
	return sh.p.charge(grown)
}

func size(v expand.Variable) int {
	n := len(v.Str)
	for _, s := range v.List {
		n += len(s)
	}
	return n
}

// borrow books memory until the statement is over.
func (sh *shell) borrow(n int) error {
	sh.borrowed += n
	return sh.p.charge(n)
}

// globDir reads a directory of the sandbox for a pattern.
func (sh *shell) globDir(name string) ([]fs.DirEntry, error) {
	t := sh.p.m.tree
	var list []fs.DirEntry
	err := t.do(func() error {
		p, err := t.walk(name, true)
		if err != nil {
			return err
		}
		infos, err := t.entries(p)
		for _, fi := range infos {
			list = append(list, fs.FileInfoToDirEntry(fi))
		}
		return err
	})
	return list, err
}

// fields expands words to arguments. What they take is charged, so that a
// brace with a billion numbers ends the program and not the host.
func (sh *shell) fields(words ...*syntax.Word) ([]string, bool) {
	var list []string
	for field, err := range expand.FieldsSeq(sh.cfg, words...) {
		if err == nil {
			err = sh.borrow(len(field) + wordCost)
		}
		if err != nil {
			sh.expansionFailed(err)
			return nil, false
		}
		list = append(list, field)
	}
	return list, true
}

// literal expands a word to one string.
func (sh *shell) literal(w *syntax.Word) (string, bool) {
	text, err := expand.Literal(sh.cfg, w)
	if err == nil {
		err = sh.borrow(len(text))
	}
	if err != nil {
		sh.expansionFailed(err)
		return "", false
	}
	return text, true
}

// expansionFailed ends the shell where POSIX says so.
func (sh *shell) expansionFailed(err error) {
	if errors.Is(err, errDead) {
		sh.flow = exitShell
		return
	}
	sh.fail(1, "%v", err)
	if _, unset := errors.AsType[expand.UnsetParameterError](err); unset {
		sh.flow = exitShell
	}
}

// substitute plays $(…) in a process and takes what it writes.
func (sh *shell) substitute(w io.Writer, cs *syntax.CmdSubst) error {
	r, out := newPipe()
	defer r.release()
	fds := sh.p.copyTable()
	fds.set(1, out)
	child, err := sh.fork(fds, func(sub *shell) { sub.forked(cs.Stmts) })
	if err != nil {
		return errDead
	}
	buf := make([]byte, chunkSize)
	for {
		n, err := r.read(sh.p, buf)
		if n > 0 {
			if err := sh.borrow(n); err != nil {
				return err
			}
			_, _ = w.Write(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			sh.substituted = sh.await(child)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// forked plays the statements of a process of its own; a single program takes
// the place of the shell.
func (sh *shell) forked(list []*syntax.Stmt) {
	if len(list) == 1 {
		sh.last = list[0]
	}
	sh.stmts(list)
}

// assign carries out assignments in this shell.
func (sh *shell) assign(list []*syntax.Assign, change func(*expand.Variable)) bool {
	for _, a := range list {
		if a.Name == nil || a.Index != nil {
			sh.fail(1, "this kind of assignment is not played here")
			return false
		}
		name := a.Name.Value
		v := sh.vars[name]
		if v.ReadOnly && !a.Naked {
			sh.fail(1, "%s: readonly variable", name)
			return false
		}
		if !a.Naked && !sh.value(&v, a) {
			return false
		}
		if change != nil {
			change(&v)
		}
		if err := sh.store(name, v); err != nil {
			sh.expansionFailed(err)
			return false
		}
	}
	return true
}

// value sets what an assignment gives.
func (sh *shell) value(v *expand.Variable, a *syntax.Assign) bool {
	if a.Array != nil {
		var words []*syntax.Word
		for _, e := range a.Array.Elems {
			words = append(words, e.Value)
		}
		list, ok := sh.fields(words...)
		if a.Append {
			list = append(v.List, list...)
		}
		v.Set, v.Kind, v.Str, v.List = true, expand.Indexed, "", list
		return ok
	}
	text, ok := sh.literal(a.Value)
	if a.Append {
		text = v.String() + text
	}
	v.Set, v.Kind, v.Str, v.List = true, expand.String, text, nil
	return ok
}

// exported is the environment of a program that the shell runs.
func (sh *shell) exported() map[string]string {
	env := map[string]string{}
	for name, v := range sh.vars {
		if v.Exported && v.Set && v.Kind == expand.String && !strings.Contains(name, "=") {
			env[name] = v.Str
		}
	}
	return env
}
