//go:build linux

package fence

import (
	"encoding/binary"
	"time"
)

// Codecs returns each packet once more after it was read and written again, by
// the name of its kind.
var Codecs = map[string]func(b []byte) ([]byte, error){
	"plan": func(b []byte) ([]byte, error) {
		p, err := decodePlan(b)
		if err != nil {
			return nil, err
		}
		return p.encode(), nil
	},
	"request": func(b []byte) ([]byte, error) {
		r, err := decodeRequest(b)
		return r.encode(), err
	},
	"answer": func(b []byte) ([]byte, error) {
		a, err := decodeAnswer(b)
		return a.encode(), err
	},
}

// Plans in writing.
var (
	EncodePlan = (*Plan).encode
	DecodePlan = decodePlan
)

// EncodeRequest writes a request down: a resize if there is no order.
func EncodeRequest(id uint64, o *Order, group bool, to Places) []byte {
	r := request{id: id, kind: kindResize, group: group, places: to}
	if o != nil {
		r.kind, r.order = kindBuild, *o
	}
	return r.encode()
}

// EncodeWays writes a request for ways down.
func EncodeWays(id uint64, w Ways) []byte {
	return (&request{id: id, kind: kindWays, ways: w}).encode()
}

// DecodeWays reads what EncodeWays wrote.
func DecodeWays(b []byte) (Ways, error) {
	r, err := decodeRequest(b)
	return r.ways, err
}

// DecodeRequest reads what EncodeRequest wrote.
func DecodeRequest(b []byte) (id uint64, o *Order, group bool, to Places, err error) {
	r, err := decodeRequest(b)
	if r.kind == kindBuild {
		o = &r.order
	}
	return r.id, o, r.group, r.places, err
}

// JobRoundTrip writes a request for a job down and reads it.
func JobRoundTrip(j Job) (Job, error) {
	r := request{id: 1, kind: kindJob, job: j}
	got, err := decodeRequest(r.encode())
	return got.job, err
}

// Pack and Unpack write a tree down and make it again.
var (
	Pack   = pack
	Unpack = unpack
)

// EncodeEntry is an entry of a tree, with its length before it.
func EncodeEntry(path, same, link string, mode uint32) []byte {
	b := (&entry{path: path, same: same, link: link, mode: mode}).encode()
	return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
}

// Magic begins a tree, and Longest bounds a path in it.
const (
	Magic   = magic
	Longest = longest
)

// EncodeAnswer writes an answer down.
func EncodeAnswer(id uint64, pid int, f Fault) []byte {
	return (&answer{id: id, pid: pid, fault: f.Step, errno: f.Errno}).encode()
}

// DecodeAnswer reads what EncodeAnswer wrote.
func DecodeAnswer(b []byte) (id uint64, pid int, failed error, err error) {
	a, err := decodeAnswer(b)
	return a.id, a.pid, a.err(), err
}

// Send and Receive carry packets.
var (
	Send    = send
	Receive = receive
)

// MaxPacket bounds one, and MaxFiles what comes with it.
const (
	MaxPacket = maxPacket
	MaxFiles  = maxFiles
)

// SetPatience changes how long a spawner is waited for, and returns what changes
// it back.
func SetPatience(d time.Duration) (undo func()) {
	before := patience
	patience = d
	return func() { patience = before }
}

// EncodeNest writes a request for a nest down, and DecodeNest reads it.
func EncodeNest(id uint64, n Nest) []byte {
	r := request{id: id, kind: kindNest, nest: n}
	return r.encode()
}

func DecodeNest(b []byte) (Nest, error) {
	r, err := decodeRequest(b)
	return r.nest, err
}
