package mount

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount is one line of a mount table.
type Mount struct {
	ID, Parent   int
	Root         string   // what part of the file system is shown
	Point        string   // where
	Options      []string // of this mount, such as ro
	Type, Source string
	SuperOptions []string // of the file system itself
}

// Bounds on what is read, against a table without end.
const (
	maxLine   = 64 << 10
	maxMounts = 200_000
)

// Table returns the mounts of the calling thread's namespace, in the order in
// which they were made as far as the kernel knows it.
func Table() ([]Mount, error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	defer func() { _ = f.Close() }()
	return Parse(f)
}

// Parse reads a table in the form of /proc/self/mountinfo.
func Parse(r io.Reader) ([]Mount, error) {
	var all []Mount
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(all) == maxMounts {
			return nil, fmt.Errorf("mount table: more than %d mounts", maxMounts)
		}
		m, err := parseLine(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("mount table: line %d: %w", len(all)+1, err)
		}
		all = append(all, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("mount table: %w", err)
	}
	return all, nil
}

// parseLine reads
// 35 31 0:32 /root /point rw,relatime shared:7 - type source rw,size=4k
func parseLine(line string) (Mount, error) {
	mount, system, ok := strings.Cut(line, " - ")
	fields, rest := strings.Split(mount, " "), strings.Split(system, " ")
	if !ok || len(fields) < 6 || len(rest) < 3 {
		return Mount{}, errors.New("fields are missing")
	}
	id, err := strconv.Atoi(fields[0])
	if err != nil {
		return Mount{}, err
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Mount{}, err
	}
	return Mount{
		ID: id, Parent: parent, Root: unescape(fields[3]), Point: unescape(fields[4]), Options: strings.Split(fields[5], ","),
		Type: unescape(rest[0]), Source: unescape(rest[1]), SuperOptions: strings.Split(rest[2], ","),
	}, nil
}

// unescape undoes \040 and the like, which the kernel writes for blanks.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Flags returns the flags that the mount has.
func (m Mount) Flags() Flags {
	var f Flags
	for _, n := range flagNames {
		if slices.Contains(m.Options, n.name) {
			f |= n.flag
		}
	}
	return f
}

// under reports whether the mount is at path or below it.
func (m Mount) under(path string) bool {
	return m.Point == path || path == "/" || strings.HasPrefix(m.Point, path+"/")
}

// absent says that the kernel has no such call.
func absent(err error) bool { return errors.Is(err, unix.ENOSYS) }
