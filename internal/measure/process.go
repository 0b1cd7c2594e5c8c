package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// process is one process of this machine. The time it began tells it from a
// later one with the same number.
type process struct {
	pid   int
	began string
}

func (p process) file(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.pid), name)
}

// gone reports an error that means that a process ended while it was looked at.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// family returns what this process started, and what that did, zombies
// included. This process itself is not among them.
func family() (map[process]bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p := process{pid: pid}
		text, err := os.ReadFile(p.file("stat"))
		if err != nil {
			continue // it has ended, or is hidden from us and so not ours
		}
		parent, began, ok := parseStat(string(text))
		if !ok {
			return nil, fmt.Errorf("%s has an unknown form", p.file("stat"))
		}
		p.began = began
		children[parent] = append(children[parent], p)
	}
	found := map[process]bool{}
	for open := []int{os.Getpid()}; len(open) > 0; open = open[1:] {
		for _, c := range children[open[0]] {
			if !found[c] {
				found[c] = true
				open = append(open, c.pid)
			}
		}
	}
	return found, nil
}

// parseStat returns the parent of a process and when it began. The name of the
// program stands in brackets before them and may hold anything.
func parseStat(text string) (parent int, began string, ok bool) {
	i := strings.LastIndexByte(text, ')')
	if i < 0 {
		return 0, "", false
	}
	f := strings.Fields(text[i+1:])
	if len(f) < 20 {
		return 0, "", false
	}
	parent, err := strconv.Atoi(f[1])
	return parent, f[19], err == nil
}

// Resident returns the memory of a process that is in RAM now.
func Resident(pid int) (cove.Bytes, error) {
	p := process{pid: pid}
	text, err := os.ReadFile(p.file("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return cove.Bytes(n) * cove.KiB, err
		}
	}
	return 0, fmt.Errorf("%s says nothing of memory", p.file("status")) // a zombie
}

// memory returns what a process shares with no other, and that with its part of
// what it shares; 0 of one that has ended.
func (p process) memory() (private, share cove.Bytes, err error) {
	text, err := os.ReadFile(p.file("smaps_rollup"))
	if gone(err) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	return parseMemory(string(text))
}

func parseMemory(rollup string) (private, share cove.Bytes, err error) {
	for line := range strings.Lines(rollup) {
		name, rest, _ := strings.Cut(line, ":")
		var to *cove.Bytes
		switch name {
		case "Private_Clean", "Private_Dirty":
			to = &private
		case "Pss":
			to = &share
		default:
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("smaps_rollup: %w", err)
		}
		*to += cove.Bytes(n) * cove.KiB
	}
	return private, share, nil
}
