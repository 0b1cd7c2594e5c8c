//go:build linux

package keeper

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/spool"
)

// linkName is the descriptor that the farewell is sent on.
const linkName = "link"

// holdings is all that a keeper holds.
type holdings struct {
	root *os.Root // of the logs

	mu    sync.Mutex
	boxes map[string]*box // guarded by mu
	logs  int             // guarded by mu; how many were ever made
}

// box is what is held of one sandbox.
type box struct {
	note, farewell string
	files          map[string]int
	programs       map[string]*program
	gate           *gateway // nil without a way out
}

func (h *holdings) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.boxes) == 0
}

// put holds a sandbox, or replaces what is held of it but for its programs. It
// takes over the files.
func (h *holdings) put(r *request, files []int) code {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[r.sandbox]
	if b == nil && len(h.boxes) >= maxSandboxes {
		closeAll(files)
		return codeFull
	}
	if b == nil {
		b = &box{programs: map[string]*program{}}
		h.boxes[r.sandbox] = b
	}
	old := b.files
	b.note, b.farewell, b.files = r.note, r.farewell, map[string]int{}
	for i, name := range r.names {
		b.files[name] = files[i]
	}
	closeAll(slices.Collect(maps.Values(old)))
	return codeDone
}

func (h *holdings) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.boxes))
}

// get returns what is held, with copies of the descriptors: the originals may be
// closed before they are sent.
func (h *holdings) get(name string) (*answer, []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[name]
	if b == nil {
		return &answer{code: codeUnknown}, nil
	}
	a := &answer{note: b.note, farewell: b.farewell, names: slices.Sorted(maps.Keys(b.files))}
	var files []int
	for _, n := range a.names {
		fd, err := unix.FcntlInt(uintptr(b.files[n]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(files)
			return failed(os.NewSyscallError("fcntl", err)), nil
		}
		files = append(files, fd)
	}
	return a, files
}

func (h *holdings) drop(name string) {
	h.mu.Lock()
	b := h.boxes[name]
	delete(h.boxes, name)
	h.mu.Unlock()
	if b == nil {
		return
	}
	for _, p := range b.programs {
		p.forget()
	}
	if b.gate != nil {
		go func() { _ = b.gate.Close() }() // its sockets are closed at once
	}
	closeAll(slices.Collect(maps.Values(b.files)))
}

// keep begins to read the output of a program. It takes over the files.
func (h *holdings) keep(r *request, files []int) code {
	streams := map[string]*os.File{}
	for i, name := range r.names {
		_ = unix.SetNonblock(files[i], true)
		streams[name] = os.NewFile(uintptr(files[i]), name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[r.sandbox]
	done := codeDone
	switch {
	case b == nil:
		done = codeUnknown
	case b.programs[r.program] != nil:
		done = codeTaken
	case len(b.programs) >= maxPrograms:
		done = codeFull
	}
	if done != codeDone {
		for _, f := range streams {
			_ = f.Close()
		}
		return done
	}
	h.logs++
	cfg := spool.Config{Root: h.root, Name: "out-" + strconv.Itoa(h.logs)}
	b.programs[r.program] = newProgram(r.note, cfg, streams[inName], streams[outName], streams[errName])
	return codeDone
}

// program returns one that is kept, or nil.
func (h *holdings) program(r *request) *program {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.boxes[r.sandbox]; b != nil {
		return b.programs[r.program]
	}
	return nil
}

func (h *holdings) programs(name string) *answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[name]
	if b == nil {
		return &answer{code: codeUnknown}
	}
	return &answer{names: slices.Sorted(maps.Keys(b.programs))}
}

func (h *holdings) forget(r *request) {
	h.mu.Lock()
	var p *program
	if b := h.boxes[r.sandbox]; b != nil {
		p = b.programs[r.program]
		delete(b.programs, r.program)
	}
	h.mu.Unlock()
	if p != nil {
		p.forget()
	}
}

// farewell tells all sandboxes that their server is gone. One that takes no
// messages is told nothing.
func (h *holdings) farewell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.boxes {
		if fd, ok := b.files[linkName]; ok && b.farewell != "" {
			_ = unix.Sendmsg(fd, []byte(b.farewell), nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		}
	}
}

func failed(err error) *answer { return &answer{code: codeFailed, text: err.Error()} }
