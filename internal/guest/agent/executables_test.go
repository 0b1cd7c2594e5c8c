//go:build linux

package agent_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cove-sandbox/cove/internal/guest/agent"
)

// Of an ELF file of 64 bits.
const (
	elfHeader  = 64
	elfProgram = 56
	elfInterp  = 3
)

// elf is the beginning of an ELF file with these program headers of type PT_INTERP.
func elf(at, size uint64, count uint16, text string) []byte {
	b := make([]byte, elfHeader+elfProgram)
	copy(b, "\x7fELF\x02\x01")
	le := binary.LittleEndian
	le.PutUint64(b[32:], elfHeader)
	le.PutUint16(b[54:], elfProgram)
	le.PutUint16(b[56:], count)
	le.PutUint32(b[elfHeader:], elfInterp)
	le.PutUint64(b[elfHeader+8:], at)
	le.PutUint64(b[elfHeader+32:], size)
	return slices.Concat(b, []byte(text))
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	const after = elfHeader + elfProgram
	for _, c := range []struct {
		name  string
		begin []byte
		want  []string
	}{
		{"nothing", nil, nil},
		{"text", []byte("hello"), nil},
		{"a program", elf(after, 6, 1, "/ld.so\x00"), []string{"/ld.so"}},
		{"a static program", elf(after, 6, 0, ""), nil},
		{"a loader beyond the end", elf(after, 60, 1, "/ld.so"), nil},
		{"a loader at the largest offset", elf(1<<64-1, 1<<64-1, 1, "/ld.so"), nil},
		{"more headers than bytes", func() []byte { b := elf(after, 6, 0xffff, ""); b[elfHeader] = 1; return b }(), nil},
		{"headers at the largest offset", func() []byte {
			b := elf(after, 6, 1, "/ld.so")
			binary.LittleEndian.PutUint64(b[32:], 1<<64-8)
			return b
		}(), nil},
		{"cut off", []byte("\x7fELF\x02\x01"), nil},
		{"a script", []byte("#! /bin/sh -e\nexit\n"), []string{"/bin/sh"}},
		{"a script by env", []byte("#!/usr/bin/env -S A=1 node --x\n"), []string{"/usr/bin/env", "/usr/bin/node", "/opt/bin/node"}},
		{"a script by env and nothing", []byte("#!/usr/bin/env\n"), []string{"/usr/bin/env"}},
		{"an empty script", []byte("#!\n"), nil},
	} {
		if got := agent.Needs(c.begin, "/usr/bin", "/opt/bin"); !slices.Equal(got, c.want) {
			t.Errorf("%s needs %q; want %q", c.name, got, c.want)
		}
	}
}
