package seccomp_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

var here = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

func TestCompileRefuses(t *testing.T) {
	allow := func(r ...seccomp.Rule) seccomp.Policy {
		return seccomp.Policy{Rules: r, Default: seccomp.Kill, Newer: seccomp.Kill}
	}
	one := []seccomp.Check{{In: []uint32{1}}}
	for name, c := range map[string]struct {
		policy seccomp.Policy
		want   string
	}{
		"nothing":        {seccomp.Policy{}, "no default"},
		"no newer":       {seccomp.Policy{Default: seccomp.Kill}, "no default"},
		"errno 0":        {seccomp.Policy{Default: seccomp.Fail(0), Newer: seccomp.Kill}, "no default"},
		"succeed":        {seccomp.Policy{Default: seccomp.Kill, Newer: seccomp.Succeed}, "no default"},
		"trap":           {seccomp.Policy{Default: unix.SECCOMP_RET_TRAP, Newer: seccomp.Kill}, "no default"},
		"unknown":        {allow(seccomp.Rule{Calls: []string{"raed"}, Else: seccomp.Allow}), `no call "raed"`},
		"twice":          {allow(seccomp.Rule{Calls: []string{"read", "read"}, Else: seccomp.Allow}), `two rules name "read"`},
		"no answer":      {allow(seccomp.Rule{Calls: []string{"read"}}), "no answer"},
		"case no answer": {allow(seccomp.Rule{Calls: []string{"read"}, Cases: []seccomp.Case{{When: one}}, Else: seccomp.Kill}), "no answer"},
		"no checks":      {allow(seccomp.Rule{Calls: []string{"read"}, Cases: []seccomp.Case{{Then: seccomp.Allow}}, Else: seccomp.Kill}), "0 checks"},
		"many cases":     {allow(seccomp.Rule{Calls: []string{"read"}, Cases: make([]seccomp.Case, 17), Else: seccomp.Kill}), "17 cases"},
		"argument 6":     {allow(seccomp.Rule{Calls: []string{"read"}, Cases: []seccomp.Case{{When: []seccomp.Check{{Arg: 6, In: []uint32{1}}}, Then: seccomp.Allow}}, Else: seccomp.Kill}), "no argument 6"},
		"no values":      {allow(seccomp.Rule{Calls: []string{"read"}, Cases: []seccomp.Case{{When: []seccomp.Check{{}}, Then: seccomp.Allow}}, Else: seccomp.Kill}), "0 values"},
	} {
		if _, err := c.policy.Compile(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

// TestProgramFollowsPolicy compares the program with the policy, read plainly,
// over every number.
func TestProgramFollowsPolicy(t *testing.T) {
	for name, p := range map[string]seccomp.Policy{
		"sandbox": seccomp.Sandbox(),
		"empty":   {Default: seccomp.Allow, Newer: seccomp.Kill},
		"big":     big(),
	} {
		prog, err := p.Compile()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plain := map[uint32]seccomp.Rule{}
		for _, r := range p.Rules {
			for _, c := range r.Calls {
				n, _ := seccomp.Number(c)
				plain[n] = r
			}
		}
		longest := 0
		for n := range uint32(1024) {
			want := p.Default
			if r, ok := plain[n]; ok {
				want = decide(r, [6]uint64{3, 5})
			} else if n > newest(t) {
				want = p.Newer
			}
			got, steps, err := answer(prog, here, n, 3, 5)
			if err != nil || got != want {
				t.Fatalf("%s: call %d: %#x %v, want %#x", name, n, got, err, want)
			}
			longest = max(longest, steps)
		}
		t.Logf("%s: %d instructions, at most %d of them for one call", name, len(prog), longest)
		if name == "sandbox" && (len(prog) > 500 || longest > 64) {
			t.Errorf("the sandbox's filter has %d instructions and runs up to %d for one call", len(prog), longest)
		}
	}
}

// decide reads a rule plainly.
func decide(r seccomp.Rule, args [6]uint64) seccomp.Action {
	for _, c := range r.Cases {
		if !slices.ContainsFunc(c.When, func(k seccomp.Check) bool {
			mask := k.Mask
			if mask == 0 {
				mask = ^uint32(0)
			}
			v := args[k.Arg]
			if k.High {
				v >>= 32
			}
			return !slices.Contains(k.In, uint32(v)&mask)
		}) {
			return c.Then
		}
	}
	return r.Else
}

func newest(t *testing.T) uint32 {
	t.Helper()
	n, ok := seccomp.Number("rseq_slice_yield")
	if !ok {
		t.Fatal("the newest call has no number")
	}
	return n
}

// big is a policy whose halves are further apart than a conditional jump goes.
func big() seccomp.Policy {
	p := seccomp.Policy{Default: seccomp.Kill, Newer: seccomp.Fail(unix.ENOSYS)}
	values := make([]uint32, 40)
	for i := range values {
		values[i] = uint32(i * 2)
	}
	for i, name := range []string{"read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk", "ioctl", "socket", "bind", "clone", "uname"} {
		p.Rules = append(p.Rules, seccomp.Rule{
			Calls: []string{name},
			Cases: []seccomp.Case{
				{When: []seccomp.Check{{Arg: 0, In: []uint32{uint32(i)}}, {Arg: 1, In: values}}, Then: seccomp.Fail(unix.EIO)},
				{When: []seccomp.Check{{Arg: 0, Mask: 2, In: values}, {Arg: 1, Mask: 4, In: []uint32{4}}}, Then: seccomp.Fail(unix.ENOENT)},
			},
			Else: seccomp.Allow,
		})
	}
	return p
}

func TestForeignArchitecturesAreKilled(t *testing.T) {
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []uint32{unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		got, _, err := answer(prog, arch, unix.SYS_READ)
		if err != nil || (got == seccomp.Allow) != (arch == here) || got != seccomp.Allow && got != seccomp.Kill {
			t.Errorf("architecture %#x: %#x %v", arch, got, err)
		}
	}
	for _, n := range []uint32{0x40000000, 0x40000000 | unix.SYS_READ, 0x7fffffff, 0x80000000, 0xffffffff} {
		if got, _, err := answer(prog, here, n); err != nil || got != seccomp.Kill {
			t.Errorf("number %#x: %#x %v, want a kill", n, got, err)
		}
	}
}

func TestBytes(t *testing.T) {
	prog, err := seccomp.Sandbox().Compile()
	if err != nil {
		t.Fatal(err)
	}
	again, err := seccomp.Parse(prog.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(prog, again); d != "" {
		t.Error(d)
	}
	for _, text := range [][]byte{nil, make([]byte, 7), make([]byte, 8*4097)} {
		if _, err := seccomp.Parse(text); err == nil {
			t.Errorf("%d bytes were taken for a program", len(text))
		}
	}
	if err := seccomp.Install(nil, false); err == nil {
		t.Error("an empty program was installed")
	}
	if err := seccomp.Install(seccomp.Program{{Code: 0xffff}}, false); err == nil {
		t.Error("nonsense was installed")
	}
}

func TestNumber(t *testing.T) {
	for name, want := range map[string]uint32{"read": unix.SYS_READ, "accept": unix.SYS_ACCEPT, "writev": unix.SYS_WRITEV, "clone3": unix.SYS_CLONE3} {
		if got, ok := seccomp.Number(name); !ok || got != want {
			t.Errorf("%s is %d %v, want %d", name, got, ok, want)
		}
	}
	if _, ok := seccomp.Number("nonsense"); ok {
		t.Error("nonsense has a number")
	}
}
