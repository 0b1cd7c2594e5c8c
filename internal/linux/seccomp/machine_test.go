package seccomp_test

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// machine runs programs as the kernel does, for the few instructions they may
// hold.
type machine struct {
	prog  seccomp.Program
	steps int
}

// answer returns what prog says to a call.
func answer(prog seccomp.Program, arch, number uint32, args ...uint64) (seccomp.Action, int, error) {
	m := machine{prog: prog}
	data := map[uint32]uint32{0: number, 4: arch}
	for i := range 6 {
		var v uint64
		if i < len(args) {
			v = args[i]
		}
		data[16+8*uint32(i)] = uint32(v)
		data[20+8*uint32(i)] = uint32(v >> 32)
	}
	a, err := m.run(data)
	return a, m.steps, err
}

func (m *machine) run(data map[uint32]uint32) (seccomp.Action, error) {
	acc := uint32(0)
	for pc := 0; pc < len(m.prog); pc++ {
		m.steps++
		in := m.prog[pc]
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			v, ok := data[in.K]
			if !ok {
				return 0, fmt.Errorf("no field at %d", in.K)
			}
			acc = v
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			pc += branch(in, acc == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			pc += branch(in, acc >= in.K)
		case unix.BPF_RET | unix.BPF_K:
			return seccomp.Action(in.K), nil
		default:
			return 0, fmt.Errorf("instruction %#x is not one that the kernel's cache understands", in.Code)
		}
	}
	return 0, errors.New("the program ends without an answer")
}

func branch(in syscall.SockFilter, yes bool) int {
	if yes {
		return int(in.Jt)
	}
	return int(in.Jf)
}
