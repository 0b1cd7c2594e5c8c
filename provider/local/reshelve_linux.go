package local

import (
	"bufio"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// reshelve makes the shelf of an earlier process ours: it takes its descriptors
// out of the files. Nil means that there is none.
func (m *made) reshelve(n *shelfNote, files map[string]int) *shelf {
	namespace, one := files[namespaceFile]
	own, two := files[storeFile(0)]
	if n == nil || !one || !two || n.Upper == "" || n.Below != "" && len(n.Lower) == 0 {
		return nil
	}
	s := &shelf{
		crew: m.crew(), group: m.group, own: newStore(own), namespace: namespace,
		owner: n.Owner, bounds: n.Bounds, shared: n.Shared, state: n.shelfState, fresh: n.Fresh,
	}
	delete(files, namespaceFile)
	delete(files, storeFile(0))
	var ok bool
	if s.lower, ok = readLayers(n.Lower, map[int]*store{0: s.own}, files); !ok {
		s.close()
		return nil
	}
	return s
}

// again takes up a shelf of an earlier process, which a step may have left in
// any state. It is false, and the shelf closed, if that cannot be found out.
func (s *shelf) again(ctx context.Context, keep func(context.Context, *shelfNote, map[string]int) error, process int, k step) bool {
	s.mu.Lock()
	err := error(nil)
	if k != "" {
		if err = s.settle(ctx, process, k); err == nil {
			s.sweep(ctx)
		}
	}
	s.keep = keep
	s.mu.Unlock()
	if err != nil {
		s.close()
	}
	return err == nil
}

// errShelf is said of a workspace that is none of those that it may be.
var errShelf = errors.New("nobody knows what the workspace is made of")

// settle finds out how far a step came. What a trial changed was committed if
// somebody asked for that and the trial was taken off; it is on trial otherwise.
// The caller holds mu.
func (s *shelf) settle(ctx context.Context, process int, k step) error {
	if (k == stepCommit || k == stepDiscard) == (s.state.Below == "") {
		return errShelf
	}
	at, err := upperOf(process)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(at); err == nil && k == stepTry && n > s.state.Next {
		s.state.Next = n // it is not the first trial since the note
	}
	if k == stepTry {
		n, err := s.promised()
		if err != nil {
			return err
		}
		if n != "" && n != at { // it was taken off to be merged
			s.state.Next, _ = strconv.Atoi(n)
			s.took(stepTry, s.change(stepTry))
			k = stepCommit
		}
	}
	c := s.change(k)
	switch at {
	case s.state.Upper: // nothing has changed
		return nil
	case c.upper:
		// It was there below the trial, too.
		if k != stepCommit || !s.holds(c.merge) {
			s.took(k, c)
			return nil
		}
	case "":
	default:
		return errShelf
	}
	if k == stepCommit { // a part may be done, and the rest can be
		if err = s.bare(ctx, c); err == nil {
			s.took(k, c)
			return nil
		}
	}
	return s.bare(ctx, s.as())
}

// promised returns the trial that somebody asked to commit; "" if there is none.
func (s *shelf) promised() (string, error) {
	list, err := namesIn(s.own.fd, ".")
	if err != nil {
		return "", err
	}
	for _, name := range list {
		layer, ok := strings.CutSuffix(name, fence.PromiseOf(""))
		if n, err := strconv.Atoi(layer); ok && err == nil && n >= s.state.Next {
			return layer, nil
		}
	}
	return "", nil
}

// holds reports whether a layer is in the own store.
func (s *shelf) holds(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(s.own.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// bare shows something over what is there. The caller holds mu.
func (s *shelf) bare(ctx context.Context, c change) error {
	j := s.job(c)
	j.Bare = true
	_, err := s.do(ctx, j, layerFiles(c.lower, s.namespace, s.own.fd)...)
	return err
}

// upperOf returns the upper layer of what a process sees at /workspace; "" if there
// is nothing.
func upperOf(process int) (string, error) {
	pid, err := pidOf(process)
	if err != nil {
		return "", err
	}
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	upper, found, lines := "", false, bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := workspaceOf(lines.Text()); ok {
			upper, found = name, true
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	// The number may have become that of another.
	if err := unix.PidfdSendSignal(process, 0, nil, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return "", os.NewSyscallError("pidfd_send_signal", err)
	}
	if found && upper == "" {
		return "", errShelf
	}
	return upper, nil
}

// workspaceOf returns what a line of the list of mounts says of /workspace: the
// root of the mount is the layer, or its source is, of an overlay.
func workspaceOf(line string) (upper string, ok bool) {
	at, of, _ := strings.Cut(line, " - ")
	place, what := strings.Fields(at), strings.Fields(of)
	if len(place) < 5 || len(what) < 2 || place[4] != cove.WorkspacePath {
		return "", false
	}
	if what[0] == "overlay" {
		return what[1], true
	}
	return strings.TrimPrefix(place[3], "/"), true
}

// sweep removes what a step left in the store, counts what is there, and gives
// the store its bounds. The caller holds mu.
func (s *shelf) sweep(ctx context.Context) {
	list, err := namesIn(s.own.fd, ".")
	if err != nil {
		return // what was noted is near enough
	}
	used := []string{s.state.Upper, fence.WorkOf(s.state.Upper)}
	if s.state.Below != "" {
		used = append(used, s.state.Below, fence.WorkOf(s.state.Below))
	}
	for _, l := range s.lower {
		if l.store == s.own {
			used = append(used, l.name)
		}
	}
	var extra int64
	for _, name := range list {
		if !slices.Contains(used, name) {
			if _, err := s.do(ctx, fence.Job{Kind: fence.JobErase, Name: name}, s.own.fd); err == nil {
				continue
			}
		}
		extra += layerDirs
		if strings.HasSuffix(name, fence.WorkOf("")) {
			more, _ := namesIn(s.own.fd, name)
			extra += int64(len(more))
		}
	}
	s.state.Extra = extra
	_ = s.resize(ctx) // the next step sets them, too
}

// namesIn lists a directory of a store.
func namesIn(dir int, name string) ([]string, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}
