package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is a filter as the kernel takes it. It holds for the architecture it
// was compiled on.
type Program []syscall.SockFilter

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// x32Bit marks numbers of the x32 interface of amd64.
const x32Bit = 0x40000000

// The few instructions that filters need. The kernel's cache of calls that are
// always allowed understands these and no others.
func load(off uint32) syscall.SockFilter {
	return syscall.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func and(mask uint32) syscall.SockFilter {
	return syscall.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}
}

func ret(a Action) syscall.SockFilter {
	return syscall.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(a)}
}

func skip(n int) syscall.SockFilter {
	return syscall.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(n)} //nolint:gosec // a program has at most maxInstructions
}

func jump(op uint16, k uint32, yes, no int) syscall.SockFilter {
	return syscall.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: k} //nolint:gosec // the bounds of a Policy keep both below 256
}

// maxInstructions is the kernel's bound.
const maxInstructions = unix.BPF_MAXINSNS

// Compile turns the policy into a program. Numbers are found by bisection, so
// the longest way through it grows with the logarithm of the policy.
func (p Policy) Compile() (Program, error) {
	rules, err := p.rules()
	if err != nil {
		return nil, err
	}
	prog := Program{
		load(offArch),
		jump(unix.BPF_JEQ, arch, 1, 0),
		ret(Kill),
		load(offNumber),
		// Also numbers that are negative as an int, such as -1.
		jump(unix.BPF_JGE, x32Bit, 0, 1),
		ret(Kill),
	}
	prog = append(prog, bisect(p.spans(rules))...)
	if len(prog) > maxInstructions {
		return nil, fmt.Errorf("seccomp: the program has %d instructions; the kernel takes %d", len(prog), maxInstructions)
	}
	return prog, nil
}

// span is what is answered from a number on, up to the next span.
type span struct {
	from uint32
	code Program
}

// spans cuts all numbers into ranges with one answer each.
func (p Policy) spans(rules map[uint32]Rule) []span {
	all := []span{{0, Program{ret(p.Default)}}}
	add := func(from uint32, code Program) {
		last := &all[len(all)-1]
		switch {
		case last.from == from:
			last.code = code
		case !slices.Equal(last.code, code):
			all = append(all, span{from, code})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		add(n, rules[n].code())
		add(n+1, Program{ret(p.Default)})
	}
	add(newest()+1, Program{ret(p.Newer)})
	return merge(all)
}

// merge joins neighbors with one answer: a gap of the default that was closed
// leaves some.
func merge(all []span) []span {
	return slices.CompactFunc(all, func(a, b span) bool { return slices.Equal(a.code, b.code) })
}

// bisect makes a tree of comparisons whose leaves are the spans.
func bisect(spans []span) Program {
	if len(spans) == 1 {
		return spans[0].code
	}
	mid := len(spans) / 2
	left, right := bisect(spans[:mid]), bisect(spans[mid:])
	var head Program
	if len(left) <= 255 {
		head = Program{jump(unix.BPF_JGE, spans[mid].from, len(left), 0)}
	} else {
		// A conditional jump reaches 255 instructions, a plain one all.
		head = Program{jump(unix.BPF_JGE, spans[mid].from, 0, 1), skip(len(left))}
	}
	return slices.Concat(head, left, right)
}

// code answers one call.
func (r Rule) code() Program {
	var prog Program
	for _, c := range r.Cases {
		prog = append(prog, c.code()...)
	}
	return append(prog, ret(r.Else))
}

// code ends with the answer, or is left past it when a check does not hold.
func (c Case) code() Program {
	prog := Program{ret(c.Then)}
	for _, k := range slices.Backward(c.When) {
		prog = append(k.code(len(prog)), prog...)
	}
	return prog
}

// code goes on behind itself when the check holds, and rest further when not.
func (k Check) code(rest int) Program {
	at := offArgs + 8*uint32(k.Arg) //nolint:gosec // 0 to 5
	if k.High {
		at += 4 // on both architectures the low half is first
	}
	prog := Program{load(at)}
	if k.Mask != 0 {
		prog = append(prog, and(k.Mask))
	}
	last := len(k.In) - 1
	for i, v := range k.In[:last] {
		prog = append(prog, jump(unix.BPF_JEQ, v, last-i, 0))
	}
	return append(prog, jump(unix.BPF_JEQ, k.In[last], 0, rest))
}

// Bytes returns the program in the form that [Parse] reads, for sending it to
// another process of this machine.
func (p Program) Bytes() []byte {
	text := make([]byte, 0, instructionSize*len(p))
	for _, f := range p {
		text = binary.NativeEndian.AppendUint16(text, f.Code)
		text = append(text, f.Jt, f.Jf)
		text = binary.NativeEndian.AppendUint32(text, f.K)
	}
	return text
}

const instructionSize = 8

// Parse reads what [Program.Bytes] wrote. Whether the program makes sense, the
// kernel says at Install.
func Parse(text []byte) (Program, error) {
	n := len(text) / instructionSize
	if len(text)%instructionSize != 0 || n == 0 || n > maxInstructions {
		return nil, errors.New("seccomp: not a program")
	}
	prog := make(Program, n)
	for i := range prog {
		b := text[i*instructionSize:]
		prog[i] = syscall.SockFilter{Code: binary.NativeEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.NativeEndian.Uint32(b[4:])}
	}
	return prog, nil
}
