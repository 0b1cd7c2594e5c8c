//go:build linux && !lean

package keeper

import (
	"encoding/json"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// The names of sockets begin with what they are for.
const (
	packetSocket = "packet-"
	streamSocket = "stream-"
	portSocket   = "port-"
)

// gateway is the way out of one sandbox.
type gateway = egress.Gateway

// maxConnections bounds those in one answer.
const maxConnections = 64

// way carries out a request about the way out of a sandbox. It takes over the
// files.
func (h *holdings) way(r *request, files []int) *answer {
	note, files, err := takeNote(r, files)
	if err != nil {
		closeAll(files)
		return failed(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[r.sandbox]
	if b == nil || (b.gate == nil) != (r.kind == kindGate) {
		closeAll(files)
		if b != nil && r.kind == kindGate {
			return &answer{code: codeTaken}
		}
		return &answer{code: codeUnknown}
	}
	switch r.kind { //nolint:exhaustive // the others are not about ways out
	case kindGate:
		err = b.open(note, r.names, files)
	case kindListen:
		err = b.listen(r.names, files)
	case kindSet:
		closeAll(files)
		var c egress.Config
		if err = json.Unmarshal(note, &c); err == nil {
			err = b.gate.Set(c)
		}
	case kindConnections:
		return connections(b.gate.Connections(r.offset))
	case kindUngate:
		gate := b.gate
		b.gate = nil
		go func() { _ = gate.Close() }()
	}
	if err != nil {
		return failed(err)
	}
	return &answer{}
}

// takeNote returns the note of a request, and the files without that of a large
// one.
func takeNote(r *request, files []int) ([]byte, []int, error) {
	for i, name := range r.names {
		if name == noteName {
			rest := append(append([]int(nil), files[:i]...), files[i+1:]...)
			r.names = append(append([]string(nil), r.names[:i]...), r.names[i+1:]...)
			note, err := readNote(files[i])
			return note, rest, err
		}
	}
	return []byte(r.note), files, nil
}

// open starts the gateway.
func (b *box) open(note []byte, names []string, files []int) error {
	var c egress.Config
	if err := json.Unmarshal(note, &c); err != nil {
		closeAll(files)
		return err
	}
	s, err := socketsOf(names, files)
	if err != nil {
		return err
	}
	b.gate, err = egress.Open(c, s, egress.Options{})
	return err
}

func (b *box) listen(names []string, files []int) error {
	s, err := socketsOf(names, files)
	if err != nil {
		return err
	}
	return b.gate.Listen(s)
}

// socketsOf sorts sockets by their names, and takes them over. Those of no kind
// are closed.
func socketsOf(names []string, files []int) (egress.Sockets, error) {
	var packets, streams, ports []int
	for i, name := range names {
		switch {
		case strings.HasPrefix(name, packetSocket):
			packets = append(packets, files[i])
		case strings.HasPrefix(name, streamSocket):
			streams = append(streams, files[i])
		case strings.HasPrefix(name, portSocket):
			ports = append(ports, files[i])
		default:
			_ = unix.Close(files[i])
		}
	}
	return egress.FromDescriptors(packets, streams, ports)
}

// connections is as much of a list as an answer has room for.
func connections(list []cove.Connection) *answer {
	list = list[:min(len(list), maxConnections)]
	for {
		text, err := json.Marshal(list)
		if err != nil {
			return failed(err)
		}
		if len(text) <= inlineNote {
			return &answer{note: string(text)}
		}
		list = list[:len(list)/2]
	}
}
