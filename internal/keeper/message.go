//go:build linux

package keeper

import (
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Protocol counts the changes of the messages that an older side would not
// understand.
const Protocol = 1

// Bounds on messages and on what is held.
const (
	MaxNote      = 1 << 20
	inlineNote   = 64 << 10 // a larger one is a descriptor
	maxName      = 80
	maxFarewell  = 256
	maxFiles     = 32   // of one message, and so of one sandbox
	maxSandboxes = 2048 // and what belongs to them
	maxPrograms  = 512  // of one sandbox
	maxPacket    = 160 << 10
	maxText      = 256
)

// kind is what a request wants.
type kind byte

const (
	kindHello kind = iota + 1
	kindPut
	kindList
	kindGet
	kindDrop
	kindKeep
	kindPrograms
	kindLook
	kindFollow
	kindShut
	kindFinish
	kindForget
	kindGate
	kindListen
	kindSet
	kindConnections
	kindUngate
	kindBye

	lastKind = kindBye
)

// The names of a program's streams.
const (
	inName  = "in"
	outName = "out"
	errName = "err"
)

// request is what a server wants.
type request struct {
	kind     kind
	protocol uint64
	sandbox  string
	program  string
	note     string
	farewell string
	names    []string // of the descriptors
	offset   int64
}

func (r *request) encode() []byte {
	var e protocol.Encoder
	e.Uint(uint64(r.kind))
	e.Uint(r.protocol)
	e.Text(r.sandbox)
	e.Text(r.program)
	e.Text(r.note)
	e.Text(r.farewell)
	e.List(r.names)
	e.Int(r.offset)
	return e.Bytes()
}

func decodeRequest(b []byte) (r request, err error) {
	d := protocol.NewDecoder(b)
	r.kind, r.protocol = kind(d.Byte(byte(lastKind))), d.Uint()
	r.sandbox, r.program, r.note, r.farewell = d.Text(maxName), d.Text(maxName), d.Text(inlineNote), d.Text(maxFarewell)
	r.names, r.offset = d.List(maxFiles, maxName), d.Int()
	return r, d.End()
}

// code is what became of a request.
type code byte

const (
	codeDone    code = iota
	codeUnknown      // there is nothing of that name
	codeTaken        // there is something of that name
	codeFull         // there is no room
	codeBusy         // another server is served
	codeWrong        // the request makes no sense
	codeVersion      // the two do not understand each other
	codeFailed       // the text says why

	lastCode = codeFailed
)

// ending is what a keeper says to bye if it ends.
const ending = "ending"

// answer is what a keeper says.
type answer struct {
	code     code
	text     string
	protocol uint64
	note     string
	farewell string
	names    []string // of descriptors, or of what was asked for
}

func (a *answer) encode() []byte {
	var e protocol.Encoder
	e.Uint(uint64(a.code))
	e.Text(a.text[:min(len(a.text), maxText)])
	e.Uint(a.protocol)
	e.Text(a.note)
	e.Text(a.farewell)
	e.List(a.names)
	return e.Bytes()
}

func decodeAnswer(b []byte) (a answer, err error) {
	d := protocol.NewDecoder(b)
	a.code, a.text, a.protocol = code(d.Byte(byte(lastCode))), d.Text(maxText), d.Uint()
	a.note, a.farewell, a.names = d.Text(inlineNote), d.Text(maxFarewell), d.List(max(maxSandboxes, maxPrograms), maxName)
	return a, d.End()
}
