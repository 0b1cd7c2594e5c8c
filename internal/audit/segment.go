package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentPrefix = "journal-"
	segmentSuffix = ".jsonl"
	segmentDigits = 8
)

func segmentName(n int) string {
	return fmt.Sprintf("%s%0*d%s", segmentPrefix, segmentDigits, n, segmentSuffix)
}

func segmentNumber(name string) (int, bool) {
	digits, ok1 := strings.CutPrefix(name, segmentPrefix)
	digits, ok2 := strings.CutSuffix(digits, segmentSuffix)
	n, err := strconv.Atoi(digits)
	return n, ok1 && ok2 && err == nil && n > 0 && segmentName(n) == name
}

// listSegments returns the numbers of the segments, in order.
func listSegments(root *os.Root) ([]int, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if n, ok := segmentNumber(e.Name()); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// file is what the journal needs of the segment it writes.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	// Reserve sets aside room on the disk for the bytes between two offsets, without
	// making the file longer. Truncate gives back what lies behind the end.
	Reserve(from, to int64) error
	Stat() (fs.FileInfo, error)
}

var errTooLong = errors.New("the line is too long")

// lineReader reads lines from a file that may still grow. What follows the last
// newline stays with the reader, which goes on with it when there is more.
type lineReader struct {
	r       *bufio.Reader
	partial []byte // what was read of the line that has no newline yet
	skip    bool   // the line is too long: throw away the rest of it
	used    bool   // partial holds the line that was returned last
	pos     int64  // where the next line begins
	pending int64  // bytes read of it
}

func newLineReader(r io.Reader, pos int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), pos: pos}
}

// next returns a line without its newline; it is valid until the next call. The
// error is io.EOF where no whole line is left for now, and errTooLong in place of
// a line that is.
func (l *lineReader) next() ([]byte, error) {
	if l.used {
		l.partial, l.used = l.partial[:0], false
	}
	for {
		part, err := l.r.ReadSlice('\n')
		l.pending += int64(len(part))
		if !l.skip {
			l.partial = append(l.partial, part...)
		}
		if l.pending > maxLine {
			l.skip, l.partial = true, l.partial[:0]
		}
		switch {
		case err == nil:
			return l.whole()
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (l *lineReader) whole() ([]byte, error) {
	l.pos += l.pending
	l.pending = 0
	if l.skip {
		l.skip = false
		return nil, errTooLong
	}
	l.used = true
	return l.partial[:len(l.partial)-1], nil
}
