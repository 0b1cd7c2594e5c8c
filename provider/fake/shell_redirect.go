package fake

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// redirected plays a statement with its descriptors led elsewhere. Those of a
// bare exec stay.
func (sh *shell) redirected(st *syntax.Stmt) {
	if len(st.Redirs) == 0 {
		sh.command(st)
		return
	}
	fds := sh.p.copyTable()
	for _, r := range st.Redirs {
		if err := sh.redirect(&fds, r); err != nil {
			fds.release()
			sh.status = 1
			if !errors.Is(err, errDead) {
				sh.complain("%s", wording(err))
			}
			return
		}
	}
	old := sh.p.swap(fds)
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) == 1 && c.Args[0].Lit() == "exec" {
		old.release()
		sh.status = 0
		return
	}
	sh.command(st)
	mine := sh.p.swap(old)
	mine.release()
}

// redirect carries out one redirection on a table.
func (sh *shell) redirect(fds *table, r *syntax.Redirect) error {
	fd := 1
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		fd = 0
	}
	if r.N != nil {
		n, err := strconv.Atoi(r.N.Value)
		if err != nil || n >= len(fds) {
			return fmt.Errorf("%s: %w", r.N.Value, syscall.EBADF)
		}
		fd = n
	}
	switch r.Op {
	case syntax.Hdoc:
		return sh.document(fds, fd, r.Hdoc)
	case syntax.DashHdoc:
		return sh.document(fds, fd, untabbed(r.Hdoc))
	}
	word, ok := sh.literal(r.Word)
	if !ok {
		return errDead
	}
	switch r.Op {
	case syntax.WordHdoc:
		fds.set(fd, newText(word+"\n"))
		return nil
	case syntax.DplIn, syntax.DplOut:
		return duplicate(fds, fd, word)
	}
	return sh.redirectFile(fds, fd, r.Op, word)
}

// untabbed is a here-document without the tabs at the start of its lines.
func untabbed(w *syntax.Word) *syntax.Word {
	if w == nil {
		return nil
	}
	out := &syntax.Word{}
	start := true
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			lines := strings.Split(lit.Value, "\n")
			for i, line := range lines {
				if i > 0 || start {
					lines[i] = strings.TrimLeft(line, "\t")
				}
			}
			plain := *lit
			plain.Value = strings.Join(lines, "\n")
			part = &plain
		}
		start = false
		out.Parts = append(out.Parts, part)
	}
	return out
}

func (sh *shell) document(fds *table, fd int, w *syntax.Word) error {
	body, err := expand.Document(sh.cfg, w)
	if err == nil {
		err = sh.borrow(len(body))
	}
	if err != nil {
		return err
	}
	fds.set(fd, newText(body))
	return nil
}

// duplicate is n>&m and n>&-.
func duplicate(fds *table, fd int, word string) error {
	if word == "-" {
		fds.set(fd, nil)
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n >= len(fds) || fds[n] == nil {
		return fmt.Errorf("%s: %w", word, syscall.EBADF)
	}
	if n != fd {
		fds.set(fd, fds[n].retain())
	}
	return nil
}

func (sh *shell) redirectFile(fds *table, fd int, op syntax.RedirOperator, name string) error {
	flag := os.O_RDONLY
	switch op {
	case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
		flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	case syntax.AppOut, syntax.AppAll:
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	case syntax.RdrInOut:
		flag = os.O_RDWR | os.O_CREATE
	}
	f, err := sh.p.m.tree.openFile(sh.p, absolute(sh.dir, name), flag)
	if err != nil {
		return fmt.Errorf("%s: %s", name, wording(err))
	}
	fds.set(fd, f)
	if op == syntax.RdrAll || op == syntax.AppAll {
		fds.set(2, f.retain())
	}
	return nil
}
