package fake

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"

	"github.com/cove-sandbox/cove"
)

func runEcho(c *call) int {
	args, end, escapes := c.args[1:], "\n", false
	for len(args) > 0 && (args[0] == "-n" || args[0] == "-e" || args[0] == "-ne" || args[0] == "-en") {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text, _, _ = format(text, nil)
	}
	if _, err := io.WriteString(c.out, text+end); err != nil {
		return c.fault("write error", err)
	}
	return 0
}

// format spells escapes and directives out. A nil configuration would be one
// that all callers share, and not safe for that.
func format(pat string, args []string) (string, int, error) {
	return expand.Format(&expand.Config{}, pat, args)
}

func runPrintf(c *call) int {
	if len(c.args) < 2 {
		_ = c.complain("usage: printf format [arguments]")
		return exitSyntax
	}
	pat, args := c.args[1], c.args[2:]
	var out strings.Builder
	for {
		text, used, err := format(pat, append([]string{}, args...))
		if err != nil {
			return c.complain("%s: %v", pat, err)
		}
		out.WriteString(text)
		if args = args[used:]; len(args) == 0 || used == 0 {
			break
		}
	}
	if _, err := io.WriteString(c.out, out.String()); err != nil {
		return c.fault("write error", err)
	}
	return 0
}

func runYes(c *call) int {
	word := "y"
	if len(c.args) > 1 {
		word = strings.Join(c.args[1:], " ")
	}
	line := []byte(word + "\n")
	block := bytes.Repeat(line, max(1, 4096/len(line)))
	for {
		if _, err := c.out.Write(block); err != nil {
			return c.fault("standard output", err)
		}
	}
}

func runSeq(c *call) int {
	from, to, step := int64(1), int64(0), int64(1)
	var n []int64
	for _, word := range c.args[1:] {
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return c.complain("invalid number: '%s'", word)
		}
		n = append(n, v)
	}
	switch len(n) {
	case 1:
		to = n[0]
	case 2:
		from, to = n[0], n[1]
	case 3:
		from, step, to = n[0], n[1], n[2]
	}
	if len(n) == 0 || len(n) > 3 || step == 0 {
		return c.complain("usage: seq [first [step]] last")
	}
	return c.buffered(func(w *bufio.Writer) int {
		for i := from; step > 0 && i <= to || step < 0 && i >= to; i += step {
			if _, err := fmt.Fprintln(w, i); err != nil {
				return 1
			}
		}
		return 0
	})
}

func runCat(c *call) int {
	_, names, err := c.options("u")
	if err != nil {
		return c.complain("%v", err)
	}
	return c.inputs(names, func(_ string, r io.Reader) error { return pour(c.out, r) })
}

// amount reads a count such as 10, +3, 64K or 1G.
func amount(text string) (int64, error) {
	n, err := cove.ParseBytes(strings.TrimLeft(text, "+-"))
	if err != nil {
		return 0, errors.New("invalid number: '" + text + "'")
	}
	return int64(n), nil
}

func runHead(c *call) int {
	opts, names, err := c.options("n:c:")
	if err != nil {
		return c.complain("%v", err)
	}
	most, byBytes := int64(10), has(opts, "c")
	if v := opts['n'] + opts['c']; v != "" {
		if most, err = amount(v); err != nil {
			return c.complain("%v", err)
		}
	}
	return c.inputs(names, func(_ string, r io.Reader) error {
		if byBytes {
			return pour(c.out, io.LimitReader(r, most))
		}
		left := most
		w := bufio.NewWriterSize(c.out, chunkSize)
		err := error(nil)
		if left > 0 {
			err = c.each(r, func(line []byte) error {
				if _, err := w.Write(line); err != nil {
					return err
				}
				if left--; left == 0 {
					return errStop
				}
				return nil
			})
		}
		return errors.Join(enough(err), w.Flush())
	})
}

func runTail(c *call) int {
	opts, names, err := c.options("n:c:")
	if err != nil {
		return c.complain("%v", err)
	}
	most, byBytes := int64(10), has(opts, "c")
	v := opts['n'] + opts['c']
	if v != "" {
		if most, err = amount(v); err != nil {
			return c.complain("%v", err)
		}
	}
	return c.inputs(names, func(_ string, r io.Reader) error {
		if byBytes {
			return c.tailBytes(r, most)
		}
		return c.tailLines(r, most, strings.HasPrefix(v, "+"))
	})
}

// tailBytes keeps what is the end so far, and pays for it.
func (c *call) tailBytes(r io.Reader, most int64) error {
	var kept []byte
	buf := make([]byte, chunkSize)
	for {
		n, err := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if over := int64(len(kept)) - most; over > 0 {
			kept = kept[over:]
		} else if err := c.p.charge(n); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			_, err = c.out.Write(kept)
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (c *call) tailLines(r io.Reader, n int64, from bool) error {
	w := bufio.NewWriterSize(c.out, chunkSize)
	var kept [][]byte
	seen := int64(0)
	err := c.each(r, func(line []byte) error {
		seen++
		if from {
			if seen >= n {
				_, err := w.Write(line)
				return err
			}
			return nil
		}
		kept = append(kept, bytes.Clone(line))
		if int64(len(kept)) > n {
			kept = kept[1:]
		}
		return nil
	})
	for _, line := range kept {
		_, _ = w.Write(line)
	}
	return errors.Join(err, w.Flush())
}

func runWc(c *call) int {
	opts, names, err := c.options("lwc")
	if err != nil {
		return c.complain("%v", err)
	}
	if len(opts) == 0 {
		opts = map[byte]string{'l': "", 'w': "", 'c': ""}
	}
	return c.inputs(names, func(name string, r io.Reader) error {
		var lines, words, size int64
		buf := make([]byte, chunkSize)
		inWord := false
		for {
			n, err := r.Read(buf)
			size += int64(n)
			for _, b := range buf[:n] {
				space := b == ' ' || b >= '\t' && b <= '\r'
				words += int64(oneIf(!space && !inWord))
				lines += int64(oneIf(b == '\n'))
				inWord = !space
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		var parts []string
		for _, col := range []struct {
			letter byte
			n      int64
		}{{'l', lines}, {'w', words}, {'c', size}} {
			if _, ok := opts[col.letter]; ok {
				parts = append(parts, strconv.FormatInt(col.n, 10))
			}
		}
		if name != "-" {
			parts = append(parts, name)
		}
		_, err := fmt.Fprintln(c.out, strings.Join(parts, " "))
		return err
	})
}

func runTee(c *call) int {
	opts, names, err := c.options("a")
	if err != nil {
		return c.complain("%v", err)
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if has(opts, "a") {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	to := []io.Writer{c.out}
	code := 0
	for _, name := range names {
		f, err := c.open(name, flag)
		if err != nil {
			code = c.fault(name, err)
			continue
		}
		defer f.f.release()
		to = append(to, f)
	}
	if err := pour(io.MultiWriter(to...), c.in); err != nil {
		return c.fault("write error", err)
	}
	return code
}
