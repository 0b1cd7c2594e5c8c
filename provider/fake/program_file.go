package fake

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// touchAll does something to each name and returns 1 if one of them failed.
func (c *call) touchAll(names []string, do func(t *tree, abs string) error) int {
	if len(names) == 0 {
		return c.complain("missing operand")
	}
	code := 0
	for _, name := range names {
		if c.p.step() != nil {
			return 1
		}
		if err := c.tree().do(func() error { return do(c.tree(), c.path(name)) }); err != nil {
			code = c.fault(name, err)
		}
	}
	return code
}

func runMkdir(c *call) int {
	opts, names, err := c.options("pm:")
	if err != nil {
		return c.complain("%v", err)
	}
	return c.touchAll(names, func(t *tree, abs string) error {
		if has(opts, "p") {
			return t.mkdirAll(abs)
		}
		return t.mkdir(abs)
	})
}

func runRmdir(c *call) int {
	return c.touchAll(c.args[1:], func(t *tree, abs string) error {
		fi, _, err := t.stat(abs, false)
		if err == nil && !fi.IsDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return err
		}
		return t.remove(abs)
	})
}

func runRm(c *call) int {
	opts, names, err := c.options("rRf")
	if err != nil {
		return c.complain("%v", err)
	}
	if len(names) == 0 && has(opts, "f") {
		return 0
	}
	return c.touchAll(names, func(t *tree, abs string) error {
		fi, _, err := t.stat(abs, false)
		switch {
		case errors.Is(err, fs.ErrNotExist) && has(opts, "f"):
			return nil
		case err != nil:
			return err
		case fi.IsDir() && !has(opts, "rR"):
			return syscall.EISDIR
		}
		return t.removeAll(abs)
	})
}

func runTouch(c *call) int {
	_, names, err := c.options("c")
	if err != nil {
		return c.complain("%v", err)
	}
	code := 0
	for _, name := range names {
		f, err := c.open(name, os.O_WRONLY|os.O_CREATE)
		if err == nil {
			f.f.release()
			err = c.tree().do(func() error { return c.tree().chtimes(c.path(name), time.Now()) })
		}
		if err != nil {
			code = c.fault(name, err)
		}
	}
	return code
}

func runChmod(c *call) int {
	_, rest, err := c.options("R")
	if err != nil || len(rest) < 2 {
		return c.complain("usage: chmod mode file...")
	}
	return c.touchAll(rest[1:], func(t *tree, abs string) error {
		fi, _, err := t.stat(abs, true)
		if err != nil {
			return err
		}
		mode, err := newMode(fi.Mode(), rest[0])
		if err != nil {
			return err
		}
		return t.chmod(abs, mode)
	})
}

// newMode reads an octal mode, +x and the like.
func newMode(old fs.FileMode, text string) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return fs.FileMode(n), nil
	}
	who, what, ok := strings.Cut(text, "+")
	add := ok
	if !ok {
		who, what, ok = strings.Cut(text, "-")
	}
	if !ok || strings.Trim(who, "ugoa") != "" || strings.Trim(what, "rwx") != "" {
		return 0, syscall.EINVAL
	}
	var bits fs.FileMode
	for i, letter := range "xwr" {
		if strings.ContainsRune(what, letter) {
			bits |= 0o111 << i
		}
	}
	if add {
		return old | bits, nil
	}
	return old &^ bits, nil
}

func runLn(c *call) int {
	opts, names, err := c.options("sfn")
	if err != nil || len(names) != 2 {
		return c.complain("usage: ln [-sf] target name")
	}
	return c.touchAll(names[1:], func(t *tree, abs string) error {
		if fi, _, err := t.stat(abs, true); err == nil && fi.IsDir() {
			abs = path.Join(abs, path.Base(names[0]))
		}
		if has(opts, "f") {
			if err := t.remove(abs); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if has(opts, "s") {
			return t.symlink(names[0], abs)
		}
		return t.link(c.path(names[0]), abs)
	})
}

func runReadlink(c *call) int {
	opts, names, err := c.options("f")
	if err != nil {
		return c.complain("%v", err)
	}
	return c.report(names, func(w *strings.Builder, t *tree, abs string) error {
		p, err := t.walk(abs, has(opts, "f"))
		if err != nil {
			return err
		}
		target := p.abs
		if !has(opts, "f") {
			if p.on == nil && (p.node == nil || p.node.link == "") {
				return syscall.EINVAL
			}
			if target, err = p.readlink(); err != nil {
				return err
			}
		}
		w.WriteString(target + "\n")
		return nil
	})
}

// report is touchAll for programs that print. They print when the tree is free
// again, since standard output may be a file of it.
func (c *call) report(names []string, do func(w *strings.Builder, t *tree, abs string) error) int {
	var out strings.Builder
	code := c.touchAll(names, func(t *tree, abs string) error { return do(&out, t, abs) })
	if _, err := io.WriteString(c.out, out.String()); err != nil {
		return c.fault("write error", err)
	}
	return code
}

// target is where mv and cp put a file that goes to a name.
func (c *call) target(from, to string) string {
	abs := c.path(to)
	err := c.tree().do(func() error {
		fi, _, err := c.tree().stat(abs, true)
		if err == nil && fi.IsDir() {
			abs = path.Join(abs, path.Base(from))
		}
		return err
	})
	if err != nil {
		return c.path(to)
	}
	return abs
}

func runMv(c *call) int {
	_, names, err := c.options("f")
	if err != nil || len(names) < 2 {
		return c.complain("usage: mv source... target")
	}
	to := names[len(names)-1]
	return c.touchAllOutside(names[:len(names)-1], func(from string) error {
		dst := c.target(from, to)
		err := c.tree().do(func() error { return c.tree().rename(c.path(from), dst) })
		if !errors.Is(err, syscall.EXDEV) {
			return err
		}
		if err := c.copyTo(c.path(from), dst, true); err != nil {
			return err
		}
		return c.tree().do(func() error { return c.tree().removeAll(c.path(from)) })
	})
}

func runCp(c *call) int {
	opts, names, err := c.options("rRap")
	if err != nil || len(names) < 2 {
		return c.complain("usage: cp [-r] source... target")
	}
	to := names[len(names)-1]
	return c.touchAllOutside(names[:len(names)-1], func(from string) error {
		return c.copyTo(c.path(from), c.target(from, to), has(opts, "rRa"))
	})
}

// touchAllOutside is touchAll for what takes long: the tree is not held.
func (c *call) touchAllOutside(names []string, do func(name string) error) int {
	code := 0
	for _, name := range names {
		if err := do(name); err != nil {
			code = c.fault(name, err)
		}
	}
	return code
}

// copyTo copies a file or, with deep, a directory.
func (c *call) copyTo(from, to string, deep bool) error {
	var list []fs.FileInfo
	var fi fs.FileInfo
	err := c.tree().do(func() error {
		var p place
		var err error
		if fi, p, err = c.tree().stat(from, true); err != nil || !fi.IsDir() {
			return err
		}
		switch {
		case !deep:
			return syscall.EISDIR
		case within(from, to):
			return syscall.EINVAL
		}
		if list, err = c.tree().entries(p); err != nil {
			return err
		}
		return c.tree().mkdirAll(to)
	})
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return c.copyFile(from, to)
	}
	for _, e := range list {
		if err := c.copyTo(path.Join(from, e.Name()), path.Join(to, e.Name()), deep); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) copyFile(from, to string) error {
	src, err := c.open(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer src.f.release()
	dst, err := c.open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer dst.f.release()
	return pour(dst, src)
}

func runLs(c *call) int {
	opts, names, err := c.options("la1AR")
	if err != nil {
		return c.complain("%v", err)
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	return c.report(names, func(w *strings.Builder, t *tree, abs string) error {
		fi, p, err := t.stat(abs, !has(opts, "l"))
		if err != nil {
			return err
		}
		list := []fs.FileInfo{fi}
		if fi.IsDir() {
			if list, err = t.entries(p); err != nil {
				return err
			}
		}
		for _, e := range list {
			if strings.HasPrefix(e.Name(), ".") && !has(opts, "aA") && fi.IsDir() {
				continue
			}
			if has(opts, "l") {
				_, _ = fmt.Fprintf(w, "%s 1 sandbox sandbox %d %s ", e.Mode(), e.Size(), e.ModTime().Format("Jan _2 15:04"))
			}
			w.WriteString(e.Name() + "\n")
		}
		return nil
	})
}

func runStat(c *call) int {
	opts, names, err := c.options("c:L")
	if err != nil {
		return c.complain("%v", err)
	}
	format := opts['c']
	if format == "" {
		format = "  File: %n\n  Size: %s\t%F"
	}
	return c.report(names, func(w *strings.Builder, t *tree, abs string) error {
		fi, _, err := t.stat(abs, has(opts, "L"))
		if err != nil {
			return err
		}
		w.WriteString(strings.NewReplacer(
			"%n", fi.Name(), "%s", strconv.FormatInt(fi.Size(), 10), "%F", kindOf(fi.Mode()), "%U", "sandbox", "%u", "1000",
			"%a", strconv.FormatUint(uint64(fi.Mode().Perm()), 8), "%Y", strconv.FormatInt(fi.ModTime().Unix(), 10),
		).Replace(format) + "\n")
		return nil
	})
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeDevice != 0:
		return "character special file"
	}
	return "regular file"
}

// runDd copies blocks: dd if= of= bs= count= conv=notrunc seek=.
func runDd(c *call) int {
	word := map[string]string{"bs": "512", "count": "-1"}
	for _, arg := range c.args[1:] {
		k, v, ok := strings.Cut(arg, "=")
		if !ok {
			return c.complain("unrecognized operand '%s'", arg)
		}
		word[k] = v
	}
	bs, err := amount(word["bs"])
	if err != nil || bs <= 0 || bs > 64<<20 {
		return c.complain("invalid number: '%s'", word["bs"])
	}
	count, err := strconv.ParseInt(word["count"], 10, 64)
	if err != nil {
		return c.complain("invalid number: '%s'", word["count"])
	}
	in, out := c.in, c.out
	if name := word["if"]; name != "" {
		f, err := c.open(name, os.O_RDONLY)
		if err != nil {
			return c.fault(name, err)
		}
		defer f.f.release()
		in = f
	}
	if name := word["of"]; name != "" {
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if strings.Contains(word["conv"], "notrunc") {
			flag &^= os.O_TRUNC
		}
		f, err := c.open(name, flag)
		if err != nil {
			return c.fault(name, err)
		}
		defer f.f.release()
		out = f
	}
	return c.blocks(in, out, bs, count, word["of"])
}

// blocks copies count blocks; a negative count means all.
func (c *call) blocks(in io.Reader, out io.Writer, bs, count int64, name string) int {
	if err := c.p.charge(int(bs)); err != nil {
		return 1
	}
	buf := make([]byte, bs)
	var total, blocks int64
	for ; blocks != count; blocks++ {
		n, err := in.Read(buf)
		if n > 0 {
			if w, err := out.Write(buf[:n]); err != nil {
				_ = c.complain("error writing '%s': %s", name, wording(err))
				_, _ = fmt.Fprintf(c.err, "%d bytes copied\n", total+int64(w))
				return 1
			}
			total += int64(n)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return c.fault("error reading", err)
			}
			break
		}
	}
	_, _ = fmt.Fprintf(c.err, "%d bytes copied\n", total)
	return 0
}

func runBasename(c *call) int {
	if len(c.args) < 2 {
		return c.complain("missing operand")
	}
	name := path.Base(c.args[1])
	if len(c.args) > 2 && name != c.args[2] {
		name = strings.TrimSuffix(name, c.args[2])
	}
	_, _ = fmt.Fprintln(c.out, name)
	return 0
}

func runDirname(c *call) int {
	if len(c.args) < 2 {
		return c.complain("missing operand")
	}
	_, _ = fmt.Fprintln(c.out, path.Dir(c.args[1]))
	return 0
}
