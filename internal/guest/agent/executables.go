//go:build linux

package agent

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove/internal/linux/landlock"
)

// executables are the files that the kernel executes when it executes some programs:
// the programs, the interpreters of scripts, and the loaders of ELF files.
type executables struct {
	dirs []string        // where env, which many scripts name, looks for interpreters
	seen map[string]bool // real paths
}

const (
	maxDepth = 4       // as many interpreters for each other as the kernel takes
	maxHead  = 4 << 10 // bytes that the headers of a file have
)

// add puts a file on the list, with what it needs. A file that cannot be read stays
// there alone: the kernel then says what is wrong.
func (x *executables) add(file string, depth int) {
	real, err := realPath(file)
	if err != nil || depth > maxDepth || x.seen[real] || !trusted(real) {
		return
	}
	x.seen[real] = true
	for _, needed := range x.needs(head(real)) {
		x.add(needed, depth+1)
	}
}

// rules let the files be executed and read.
func (x *executables) rules() []landlock.Rule {
	rules := make([]landlock.Rule, 0, len(x.seen))
	for file := range x.seen {
		rules = append(rules, landlock.Rule{Path: file, Allow: landlock.Execute | landlock.ReadFile})
	}
	return rules
}

// head is the beginning of a file.
func head(file string) []byte {
	f, err := os.Open(file) //nolint:gosec // we run as the sandbox's user
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, maxHead)
	n, _ := io.ReadFull(f, buf)
	return buf[:n]
}

// needs are the files that the kernel executes for one that begins so.
func (x *executables) needs(begin []byte) []string {
	line, isScript := bytes.CutPrefix(begin, []byte("#!"))
	if !isScript {
		if loader := elfLoader(begin); loader != "" {
			return []string{loader}
		}
		return nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return nil
	}
	all := []string{words[0]}
	if path.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
		for _, dir := range x.dirs {
			if len(words) > 0 {
				all = append(all, path.Join(dir, words[0]))
			}
		}
	}
	return all
}

// Parts of an ELF file of 64 bits.
const (
	elfHeader  = 64
	elfProgram = 56 // one program header
	elfInterp  = 3  // its type where it names the loader
)

// elfLoader is the loader that an ELF file names; "" if it names none within the bytes
// at hand. Linkers put it right behind the headers.
func elfLoader(b []byte) string {
	if len(b) < elfHeader || string(b[:6]) != "\x7fELF\x02\x01" {
		return ""
	}
	le := binary.LittleEndian
	at, size, count := le.Uint64(b[32:]), le.Uint16(b[54:]), le.Uint16(b[56:])
	if size != elfProgram {
		return ""
	}
	for range count {
		if at > uint64(len(b)-elfProgram) { //nolint:gosec // the file is longer than its header
			return ""
		}
		p := b[at : at+elfProgram]
		if le.Uint32(p) == elfInterp {
			begin, n := le.Uint64(p[8:]), le.Uint64(p[32:])
			if begin > uint64(len(b)) || n > uint64(len(b))-begin {
				return ""
			}
			return string(bytes.TrimRight(b[begin:begin+n], "\x00"))
		}
		at += elfProgram
	}
	return ""
}
