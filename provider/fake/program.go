package fake

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// programs returns everything that /bin holds. It is a function and not a
// variable because some programs look others up in it.
func programs() map[string]program {
	return map[string]program{
		"sh": runShell, "bash": runShell, "dash": runShell,
		"true": runTrue, "false": runFalse, "test": runTest, "[": runTest,
		"echo": runEcho, "printf": runPrintf, "yes": runYes, "seq": runSeq,
		"cat": runCat, "head": runHead, "tail": runTail, "wc": runWc, "tee": runTee,
		"sort": runSort, "uniq": runUniq, "grep": runGrep, "tr": runTr, "cut": runCut,
		"ls": runLs, "mkdir": runMkdir, "rmdir": runRmdir, "rm": runRm, "mv": runMv, "cp": runCp, "ln": runLn,
		"touch": runTouch, "chmod": runChmod, "stat": runStat, "readlink": runReadlink, "dd": runDd,
		"basename": runBasename, "dirname": runDirname, "pwd": runPwd,
		"env": runEnv, "printenv": runPrintenv, "id": runID, "whoami": runWhoami,
		"hostname": runHostname, "nproc": runNproc, "date": runDate, "uname": runUname,
		"sleep": runSleep, "kill": runKill, "nohup": runNohup, "setsid": runSetsid,
		"stty": runStty, "tty": runTTY, "hog": runHog, "serve": runServe, "nc": runNc, "curl": runCurl,
	}
}

// opened is a stream that a program opened, with the process that did.
type opened struct {
	p *proc
	f *file
}

func (o opened) Read(b []byte) (int, error) {
	if err := o.p.step(); err != nil {
		return 0, err
	}
	return o.f.read(o.p, b)
}

func (o opened) Write(b []byte) (int, error) {
	if err := o.p.step(); err != nil {
		return 0, err
	}
	return o.f.write(o.p, b)
}

// open opens a file for the program. It must be released.
func (c *call) open(name string, flag int) (opened, error) {
	f, err := c.tree().openFile(c.p, c.path(name), flag)
	return opened{c.p, f}, err
}

// inputs calls use for each named file, or for standard input where there is
// none, and returns 1 if one of them could not be read.
func (c *call) inputs(names []string, use func(name string, r io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		if err := c.input(name, use); err != nil {
			code = c.fault(name, err)
			if errors.Is(err, errDead) {
				return code
			}
		}
	}
	return code
}

func (c *call) input(name string, use func(string, io.Reader) error) error {
	if name == "-" {
		return use(name, c.in)
	}
	f, err := c.open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.f.release()
	return use(name, f)
}

// pour copies a stream in chunks.
func pour(w io.Writer, r io.Reader) error {
	// The struct hides other methods of both ends, so that the chunks stay small.
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, chunkSize))
	return err
}

// buffered runs fn with a buffer before standard output.
func (c *call) buffered(fn func(w *bufio.Writer) int) int {
	w := bufio.NewWriterSize(c.out, chunkSize)
	code := fn(w)
	if err := w.Flush(); err != nil && code == 0 {
		return c.fault("write error", err)
	}
	return code
}

// scanner reads lines of any length and charges for the long ones.
type scanner struct {
	p       *proc
	r       *bufio.Reader
	line    []byte
	charged int
}

func (c *call) scan(r io.Reader) *scanner {
	return &scanner{p: c.p, r: bufio.NewReaderSize(r, chunkSize)}
}

// next returns a line with its newline, if it has one. It is valid until the
// next call. At the end the error is EOF.
func (s *scanner) next() ([]byte, error) {
	s.line = s.line[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		s.line = append(s.line, part...)
		if over := len(s.line) - s.charged; over > 0 && len(s.line) > chunkSize {
			if err := s.p.charge(over); err != nil {
				return nil, err
			}
			s.charged = len(s.line)
		}
		switch {
		case err == nil:
			return s.line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(s.line) > 0:
			return s.line, nil
		default:
			return nil, err
		}
	}
}

// each calls fn for every line of a stream.
func (c *call) each(r io.Reader, fn func(line []byte) error) error {
	s := c.scan(r)
	for {
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = fn(line)
		}
		if err != nil {
			return err
		}
	}
}

// errStop ends each early.
var errStop = errors.New("enough")

func enough(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// options takes a command line apart as getopt does: a letter of spec that is
// followed by a colon has a value.
func (c *call) options(spec string) (opts map[byte]string, rest []string, err error) {
	opts = map[byte]string{}
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			return opts, append(rest, args[i+1:]...), nil
		}
		if len(word) < 2 || word[0] != '-' {
			rest = append(rest, word)
			continue
		}
		for j := 1; j < len(word); j++ {
			at := strings.IndexByte(spec, word[j])
			if at < 0 || word[j] == ':' {
				return nil, nil, fmt.Errorf("invalid option -- '%c'", word[j])
			}
			if at+1 == len(spec) || spec[at+1] != ':' {
				opts[word[j]] = ""
				continue
			}
			value := word[j+1:]
			if value == "" {
				if i++; i == len(args) {
					return nil, nil, fmt.Errorf("option requires an argument -- '%c'", word[j])
				}
				value = args[i]
			}
			opts[word[j]] = value
			break
		}
	}
	return opts, rest, nil
}

func has(opts map[byte]string, letters string) bool {
	for i := range len(letters) {
		if _, ok := opts[letters[i]]; ok {
			return true
		}
	}
	return false
}
