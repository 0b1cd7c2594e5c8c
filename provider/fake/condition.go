package fake

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// condition is an expression of test, and what is left of it.
type condition struct {
	c    *call
	rest []string
	err  error
}

// runTest is test and [.
func runTest(c *call) int {
	args := c.args[1:]
	if c.args[0] == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			_ = c.complain("missing `]'")
			return exitSyntax
		}
		args = args[:len(args)-1]
	}
	if len(args) == 0 {
		return 1
	}
	x := &condition{c: c, rest: args}
	yes := x.or()
	if x.err == nil && len(x.rest) > 0 {
		x.err = fmt.Errorf("%s: unexpected argument", x.rest[0])
	}
	if x.err != nil {
		_ = c.complain("%v", x.err)
		return exitSyntax
	}
	return oneIf(!yes)
}

func (x *condition) next() string {
	if len(x.rest) == 0 {
		x.err = errors.New("argument expected")
		return ""
	}
	word := x.rest[0]
	x.rest = x.rest[1:]
	return word
}

func (x *condition) sees(word string) bool { return len(x.rest) > 0 && x.rest[0] == word }

func (x *condition) or() bool {
	yes := x.and()
	for x.sees("-o") {
		x.next()
		other := x.and()
		yes = yes || other
	}
	return yes
}

func (x *condition) and() bool {
	yes := x.primary()
	for x.sees("-a") {
		x.next()
		other := x.primary()
		yes = yes && other
	}
	return yes
}

func (x *condition) primary() bool {
	switch {
	case x.err != nil:
		return false
	case len(x.rest) >= 3 && slices.Contains(binaryTests, x.rest[1]):
		left, op, right := x.next(), x.next(), x.next()
		yes, err := compare(left, op, right)
		x.err = err
		return yes
	case x.sees("!") && len(x.rest) > 1:
		x.next()
		return !x.primary()
	case x.sees("(") && len(x.rest) > 1:
		x.next()
		yes := x.or()
		if x.next() != ")" {
			x.err = errors.New("`)' expected")
		}
		return yes
	}
	word := x.next()
	if len(word) == 2 && word[0] == '-' && strings.Contains(unaryTests, word[1:]) && len(x.rest) > 0 {
		return x.c.examine(word, x.next())
	}
	return word != ""
}

const unaryTests = "edfLhsrwxcpSbntz"

var binaryTests = []string{"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"}

// compare carries out a test of two words.
func compare(left, op, right string) (bool, error) {
	switch op {
	case "=", "==":
		return left == right, nil
	case "!=":
		return left != right, nil
	case "<":
		return left < right, nil
	case ">":
		return left > right, nil
	}
	a, errA := strconv.ParseInt(strings.TrimSpace(left), 10, 64)
	b, errB := strconv.ParseInt(strings.TrimSpace(right), 10, 64)
	if errA != nil || errB != nil {
		return false, errors.New("integer expression expected")
	}
	switch op {
	case "-eq":
		return a == b, nil
	case "-ne":
		return a != b, nil
	case "-lt":
		return a < b, nil
	case "-le":
		return a <= b, nil
	case "-gt":
		return a > b, nil
	}
	return a >= b, nil
}

// examine carries out a test of one word.
func (c *call) examine(op, word string) bool {
	switch op {
	case "-n":
		return word != ""
	case "-z":
		return word == ""
	case "-t":
		fd, err := strconv.Atoi(word)
		return err == nil && c.p.terminal(fd) != nil
	}
	var fi fs.FileInfo
	readOnly := false
	err := c.tree().do(func() error {
		var err error
		var p place
		fi, p, err = c.tree().stat(c.path(word), op != "-L" && op != "-h")
		readOnly = p.on == nil && (p.node == nil || p.node.device == nil) || p.on != nil && p.on.readOnly
		return err
	})
	if err != nil || word == "" {
		return false
	}
	switch mode := fi.Mode(); op {
	case "-e", "-r":
		return true
	case "-w":
		return !readOnly
	case "-x":
		return mode.IsDir() || mode.Perm()&0o111 != 0
	case "-s":
		return fi.Size() > 0
	case "-f":
		return mode.IsRegular()
	case "-d":
		return mode.IsDir()
	case "-L", "-h":
		return mode&fs.ModeSymlink != 0
	case "-c":
		return mode&fs.ModeCharDevice != 0
	}
	return false
}

// testClause plays [[ … ]].
func (sh *shell) testClause(t *syntax.TestClause) {
	sh.status = 0
	yes := sh.testExpr(t.X)
	if sh.status == 0 {
		sh.status = oneIf(!yes)
	}
}

func (sh *shell) testExpr(x syntax.TestExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		text, _ := sh.literal(x)
		return text != ""
	case *syntax.ParenTest:
		return sh.testExpr(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return !sh.testExpr(x.X)
		}
		w, _ := x.X.(*syntax.Word)
		text, _ := sh.literal(w)
		return newCall(sh.p, []string{"[["}, nil, sh.dir).examine(x.Op.String(), text)
	case *syntax.BinaryTest:
		return sh.binaryTest(x)
	}
	return false
}

func (sh *shell) binaryTest(x *syntax.BinaryTest) bool {
	switch x.Op {
	case syntax.AndTest:
		return sh.testExpr(x.X) && sh.testExpr(x.Y)
	case syntax.OrTest:
		return sh.testExpr(x.X) || sh.testExpr(x.Y)
	}
	left, _ := x.X.(*syntax.Word)
	right, _ := x.Y.(*syntax.Word)
	a, _ := sh.literal(left)
	switch x.Op {
	case syntax.TsMatch, syntax.TsMatchShort:
		return sh.matches(a, right)
	case syntax.TsNoMatch:
		return !sh.matches(a, right)
	}
	b, _ := sh.literal(right)
	if x.Op == syntax.TsReMatch {
		rx, err := regexp.Compile(b)
		return err == nil && rx.MatchString(a)
	}
	yes, err := compare(a, x.Op.String(), b)
	if err != nil {
		sh.fail(exitSyntax, "[[: %v", err)
	}
	return yes
}
