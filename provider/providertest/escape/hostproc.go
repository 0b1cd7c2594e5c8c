package escape

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// A mark is a number of seconds that nobody else sleeps for, so that the host
// can find a program of a sandbox by its arguments.
func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "599." + strconv.FormatUint(binary.BigEndian.Uint64(b[:])%1e9+1e9, 10)
}

// processesWith returns the processes of the host that have a mark among their
// arguments as a whole word: a shell that still holds the script is none.
func processesWith(mark string) []string {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var pids []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		for arg := range bytes.SplitSeq(text, []byte{0}) {
			if string(arg) == mark {
				pids = append(pids, filepath.Base(filepath.Dir(name)))
				break
			}
		}
	}
	return pids
}

// processesHolding returns the processes of the host that have a file open.
func processesHolding(name string) []string {
	held, err := os.Stat(name)
	if err != nil {
		return nil
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	var pids []string
	for _, fd := range fds {
		if at, err := os.Stat(fd); err == nil && os.SameFile(at, held) {
			pids = append(pids, strings.Split(fd, "/")[2])
		}
	}
	return pids
}

// statusOf returns what /proc says about a process of the host.
func statusOf(pid string) map[string]string {
	text, _ := os.ReadFile("/proc/" + pid + "/status") // nothing if it ended
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		k, v, _ := strings.Cut(line, ":")
		fields[k] = strings.TrimSpace(v)
	}
	return fields
}

// until waits until something holds, and gives up after a while.
func until(ctx context.Context, patience time.Duration, holds func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// lingering is a script that stays for as long as a mark says, which is its
// first argument.
func (r *round) lingering(before string) string { return before + `echo ready; exec sleep "$0"` }

// beside starts a program with a mark as its last argument, waits until it
// says something, looks, and ends it.
func (r *round) beside(ctx context.Context, argv []string, look func(p cove.Process, mark string) verdict) verdict {
	mark, out := newMark(), newOutput()
	p, err := r.start(ctx, out, cove.Limits{Output: maxOutput}, append(argv, mark)...)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = p.Kill(context.WithoutCancel(ctx)) }() // Destroy would end it too
	select {
	case <-out.wrote:
	case <-ctx.Done():
		return failed(ctx.Err())
	}
	// What it says comes before what it becomes.
	until(ctx, time.Second, func() bool { return len(processesWith(mark)) > 0 })
	return look(p, mark)
}

// content returns the beginning of a file.
func content(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// digest is short, and tells one text from another.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
