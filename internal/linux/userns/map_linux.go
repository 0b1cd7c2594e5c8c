package userns

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Map gives users of a namespace users of the host.
type Map struct {
	Inside, Outside, Size uint32
}

// Sys returns maps in the form that os/exec takes.
func Sys(maps ...Map) []syscall.SysProcIDMap {
	all := make([]syscall.SysProcIDMap, 0, len(maps))
	for _, m := range maps {
		all = append(all, syscall.SysProcIDMap{ContainerID: int(m.Inside), HostID: int(m.Outside), Size: int(m.Size)})
	}
	return all
}

// Range is a run of ids that belong to somebody.
type Range struct {
	First, Count uint32
}

// maxSubIDs bounds the size of a file with ranges.
const maxSubIDs = 1 << 20

// SubIDs returns the ranges of subordinate ids that a file like /etc/subuid
// gives a user, who is named there by name or by number. A file that does not
// exist gives none.
func SubIDs(path, name string, id int) ([]Range, error) {
	f, err := os.Open(path) //nolint:gosec // the caller's choice
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("subordinate ids: %w", err)
	}
	defer func() { _ = f.Close() }()
	var all []Range
	lines := bufio.NewScanner(io.LimitReader(f, maxSubIDs))
	for lines.Scan() {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) != 3 || fields[0] != name && fields[0] != strconv.Itoa(id) {
			continue
		}
		first, err := strconv.ParseUint(fields[1], 10, 32)
		if err != nil {
			continue
		}
		count, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil || count == 0 || first+count > 1<<32 {
			continue
		}
		all = append(all, Range{uint32(first), uint32(count)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("subordinate ids: %w", err)
	}
	return all, nil
}

// Mappers returns the helpers that map subordinate ids for ordinary users;
// false where the host lacks one of them. Without them a user can map only
// himself.
func Mappers() (uid, gid string, ok bool) {
	uid, err := exec.LookPath("newuidmap")
	if err != nil {
		return "", "", false
	}
	gid, err = exec.LookPath("newgidmap")
	return uid, gid, err == nil
}
