package solo_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/solo"
)

// stage is a process of the package, outside of any sandbox.
type stage struct {
	t     *testing.T
	cmd   *exec.Cmd
	link  *os.File
	chdir int
}

// begin executes the image.
func begin(t *testing.T) *stage {
	t.Helper()
	image, err := solo.Image()
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "link")
	s := &stage{t: t, link: os.NewFile(uintptr(fds[0]), "link"), cmd: exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/fd/"+strconv.Itoa(image))}
	s.cmd.ExtraFiles = []*os.File{theirs}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() {
		_, _ = unix.Close(image), s.link.Close()
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("the process itself: %v", err)
		}
	})
	return s
}

// send hands it an order. The program writes to out.
func (s *stage) send(o solo.Order, in, out *os.File) {
	s.t.Helper()
	text, chdir, err := o.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	s.chdir = chdir
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		s.t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "order")
	defer func() { _ = file.Close() }()
	if _, err := file.Write(text); err != nil {
		s.t.Fatal(err)
	}
	if err := solo.Send(int(s.link.Fd()), fd, len(text), [3]int{int(in.Fd()), int(out.Fd()), int(out.Fd())}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) report() solo.Report {
	s.t.Helper()
	b := make([]byte, solo.ReportSize+1)
	n, err := s.link.Read(b)
	if err != nil {
		s.t.Fatal(err)
	}
	r, ok := solo.DecodeReport(b[:n], s.chdir)
	if !ok {
		s.t.Fatalf("%d bytes are no report", n)
	}
	return r
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func null(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestProgram(t *testing.T) {
	// What this process ignores, programs do not.
	signal.Ignore(unix.SIGUSR2)
	t.Cleanup(func() { signal.Reset(unix.SIGUSR2) })
	const here = "PATH=/nowhere:/usr/bin:/bin"
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/plain", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/folder", 0o755); err != nil {
		t.Fatal(err)
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = "a"
	}
	for name, c := range map[string]struct {
		order solo.Order
		want  solo.Report
		out   string
	}{
		"a program":              {order: solo.Order{Argv: []string{"echo", "a  b", ""}, Env: []string{here}, Dir: "/"}, out: "a  b \n"},
		"a path":                 {order: solo.Order{Argv: []string{"/bin/echo", "x"}, Dir: "/"}, out: "x\n"},
		"the usual path":         {order: solo.Order{Argv: []string{"echo", "x"}, Dir: "/"}, out: "x\n"},
		"a relative path":        {order: solo.Order{Argv: []string{"./sh", "-c", "pwd"}, Dir: "/bin"}, out: "/usr/bin\n"},
		"a relative PATH":        {order: solo.Order{Argv: []string{"echo", "x"}, Env: []string{"PATH=bin"}, Dir: "/"}, out: "x\n"},
		"a code":                 {order: solo.Order{Argv: []string{"sh", "-c", "exit 7"}, Env: []string{here}, Dir: "/"}, want: solo.Report{Status: 7 << 8}},
		"a signal":               {order: solo.Order{Argv: []string{"sh", "-c", "kill -9 $$"}, Env: []string{here}, Dir: "/"}, want: solo.Report{Status: 9}},
		"its environment":        {order: solo.Order{Argv: []string{"env"}, Env: []string{here, "A=b"}, Dir: "/"}, out: here + "\nA=b\n"},
		"its group":              {order: solo.Order{Argv: []string{"sh", "-c", `read p n s pp g rest </proc/self/stat; [ $g = $$ ] && echo own`}, Env: []string{here}, Dir: "/"}, out: "own\n"},
		"its files":              {order: solo.Order{Argv: []string{"sh", "-c", "cd /proc/self/fd; echo *"}, Env: []string{here}, Dir: "/"}, out: "0 1 2 3\n"}, // by which it reads the list
		"its limits":             {order: solo.Order{Argv: []string{"sh", "-c", "ulimit -Sn; ulimit -Hn"}, Env: []string{here}, Dir: "/", Limits: []solo.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 30, Hard: 40}}}, out: "30\n40\n"},
		"its signals":            {order: solo.Order{Argv: []string{"grep", "SigIgn", "/proc/self/status"}, Env: []string{here}, Dir: "/"}, out: "SigIgn:\t0000000000000000\n"},
		"many arguments":         {order: solo.Order{Argv: append([]string{"sh", "-c", "echo $#", "-"}, many...), Env: []string{here}, Dir: "/"}, out: "10000\n"},
		"orphans do not stay":    {order: solo.Order{Argv: []string{"sh", "-c", "(true & exit) & wait; echo x"}, Env: []string{here}, Dir: "/"}, out: "x\n"},
		"no such program":        {order: solo.Order{Argv: []string{"nothing-here"}, Env: []string{here}, Dir: "/"}, want: solo.Report{Stage: solo.StageExec, Errno: syscall.ENOENT}},
		"no such path":           {order: solo.Order{Argv: []string{"/nothing"}, Dir: "/"}, want: solo.Report{Stage: solo.StageExec, Errno: syscall.ENOENT}},
		"not executable":         {order: solo.Order{Argv: []string{"plain"}, Env: []string{"PATH=" + dir + ":/bin"}, Dir: "/"}, want: solo.Report{Stage: solo.StageExec, Errno: syscall.EACCES}},
		"not executable by path": {order: solo.Order{Argv: []string{dir + "/plain"}, Dir: "/"}, want: solo.Report{Stage: solo.StageExec, Errno: syscall.EACCES}},
		"a directory":            {order: solo.Order{Argv: []string{"folder"}, Env: []string{"PATH=" + dir}, Dir: "/"}, want: solo.Report{Stage: solo.StageExec, Errno: syscall.ENOENT}},
		"a long argument":        {order: solo.Order{Argv: []string{"true", strings.Repeat("x", 2<<20)}, Env: []string{here}, Dir: "/"}, want: solo.Report{Stage: solo.StageExec, Errno: syscall.E2BIG}},
		"no such directory":      {order: solo.Order{Argv: []string{"true"}, Env: []string{here}, Dir: "/nowhere"}, want: solo.Report{Stage: solo.StageDir, Errno: syscall.ENOENT}},
		"a limit too high":       {order: solo.Order{Argv: []string{"true"}, Env: []string{here}, Dir: "/", Limits: []solo.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 2, Hard: 1}}}, want: solo.Report{Stage: solo.StageStart, Errno: syscall.EINVAL}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			r, w := pipe(t)
			s.send(c.order, null(t), w)
			_ = w.Close()
			out, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got := s.report()
			if got.Stage == solo.StageNone && got.MaxRSS == 0 {
				t.Error("nothing was used")
			}
			got.CPU, got.MaxRSS = 0, 0
			if got != c.want || string(out) != c.out {
				t.Errorf("%+v with %q; want %+v with %q", got, out, c.want, c.out)
			}
		})
	}
}

func TestSignal(t *testing.T) {
	s := begin(t)
	r, w := pipe(t)
	s.send(solo.Order{Argv: []string{"sh", "-c", `trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.01; done`}, Dir: "/"}, null(t), w)
	_ = w.Close()
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.link.Write([]byte{byte(unix.SIGUSR1)}); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	if got := s.report(); got.Status != 3<<8 || string(out) != "got\n" {
		t.Errorf("%+v with %q", got, out)
	}
}

// TestHostGone ends the link; the cleanup waits for the process.
func TestHostGone(t *testing.T) {
	t.Run("before the order", func(t *testing.T) { begin(t) })
	t.Run("while the program runs", func(t *testing.T) {
		s := begin(t)
		r, w := pipe(t)
		in, hold := pipe(t)
		s.send(solo.Order{Argv: []string{"cat"}, Dir: "/"}, in, w)
		_, _ = w.Close(), in.Close()
		t.Cleanup(func() { _ = hold.Close() }) // before the pipe's own: without a namespace the program lives on
		_ = s.link.Close()
		if err := s.cmd.Wait(); err != nil {
			t.Error(err)
		}
		_ = hold.Close()
		if _, err := io.ReadAll(r); err != nil {
			t.Error(err)
		}
		s.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), "true")
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRefused(t *testing.T) {
	for _, o := range []solo.Order{
		{Argv: []string{"a\x00b"}, Dir: "/"},
		{Argv: []string{"a"}, Env: []string{"A=\x00"}, Dir: "/"},
		{Argv: []string{"a"}, Dir: "/\x00"},
	} {
		if _, _, err := o.Encode(); err == nil {
			t.Errorf("%+v was drawn", o)
		}
	}
	if _, ok := solo.DecodeReport(make([]byte, solo.ReportSize-1), 0); ok {
		t.Error("half a report was read")
	}
	if err := solo.Send(-1, 0, 0, [3]int{}); err == nil {
		t.Error("sent to nobody")
	}
}
