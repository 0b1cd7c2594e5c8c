package kernel

import (
	"bytes"
	"crypto/rand"
	"strconv"
)

// kind says what a request or a frame is about.
type kind byte

// What the host asks for.
const (
	askBegin kind = 'I'
	askAdopt kind = 'A'
	askRun   kind = 'X'
	askCalm  kind = 'C'
	askEnv   kind = 'V'
	askPing  kind = 'P'
)

// What a driver says. A part that is not the last has the kind in lower case.
const (
	sayHello   kind = 'H'
	sayAdopted kind = 'A'
	sayMark    kind = 'M'
	sayValue   kind = 'R'
	sayMain    kind = 'T'
	sayError   kind = 'E'
	sayDone    kind = 'D'
	sayLast    kind = 'L'
	sayPoint   kind = 'B'
	sayAfter   kind = 'W'
	sayPong    kind = 'P'
)

const (
	maxFrame  = 4096 // PIPE_BUF: the kernel does not tear what is written at once
	maxHeader = 32   // of "KIND SEQ LEN\n"
	lower     = 'a' - 'A'
)

// frame is one thing that a driver says.
type frame struct {
	kind kind
	part bool // more of it follows
	seq  uint32
	body []byte
}

// newMarker draws what a driver marks its frames with. The first byte is one that
// texts do not have, so that nearly nothing has to be held back.
func newMarker() []byte { return append([]byte{0x1e}, rand.Text()...) }

// request is one thing that the host says, ready to be sent.
func request(k kind, seq uint32, body ...[]byte) []byte {
	n := 0
	for _, b := range body {
		n += len(b)
	}
	out := make([]byte, 0, maxHeader+n)
	out = append(out, byte(k), ' ')
	out = strconv.AppendUint(out, uint64(seq), 10)
	out = append(out, ' ')
	out = strconv.AppendInt(out, int64(n), 10)
	out = append(out, '\n')
	for _, b := range body {
		out = append(out, b...)
	}
	return out
}

// list joins texts so that none of them can be taken for another.
func list(texts ...string) []byte {
	var out []byte
	for _, t := range texts {
		out = strconv.AppendInt(out, int64(len(t)), 10)
		out = append(out, ':')
		out = append(out, t...)
	}
	return out
}

// unlist takes a list apart, up to most texts. It reports false for what is none.
func unlist(b []byte, most int) ([]string, bool) {
	var out []string
	for len(b) > 0 {
		i := bytes.IndexByte(b[:min(len(b), maxHeader)], ':')
		if i < 0 || len(out) == most {
			return nil, false
		}
		n, ok := number(b[:i])
		if !ok || n > uint64(len(b[i+1:])) {
			return nil, false
		}
		end := i + 1 + int(n) //nolint:gosec // it is no more than the length
		out = append(out, string(b[i+1:end]))
		b = b[end:]
	}
	return out, true
}

// number reads decimal digits, at most ten.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 10 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// shape is what the bytes after a marker are.
type shape int

const (
	noFrame    shape = iota
	unfinished       // they may become one
	aFrame
)

// parse reads a frame from what follows a marker of a length, and returns how many
// bytes it takes. The body lies in b.
func parse(b []byte, marker int) (frame, int, shape) {
	end := bytes.IndexAny(b[:min(len(b), maxHeader)], "\n;")
	if end < 0 {
		if len(b) < maxHeader {
			return frame{}, 0, unfinished
		}
		return frame{}, 0, noFrame
	}
	words := bytes.Split(b[:end], []byte{' '})
	if len(words) != 3 || len(words[0]) != 1 {
		return frame{}, 0, noFrame
	}
	f := frame{kind: kind(words[0][0])}
	if f.kind >= 'a' && f.kind <= 'z' {
		f.kind, f.part = f.kind-lower, true
	}
	seq, ok := number(words[1])
	n, fine := number(words[2])
	total := uint64(end) + 1 + n
	if !ok || !fine || seq > 1<<32-1 || total+uint64(marker) > maxFrame || !f.kind.known() { //nolint:gosec // lengths are not negative
		return frame{}, 0, noFrame
	}
	if uint64(len(b)) < total {
		return frame{}, 0, unfinished
	}
	f.seq, f.body = uint32(seq), b[end+1:total]
	return f, int(total), aFrame //nolint:gosec // maxFrame is small
}

func (k kind) known() bool {
	switch k {
	case sayHello, sayAdopted, sayMark, sayValue, sayMain, sayError, sayDone, sayLast, sayPoint, sayAfter, sayPong:
		return true
	case askBegin, askRun, askCalm, askEnv:
	}
	return false
}
