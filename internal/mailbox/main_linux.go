package mailbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/agent"
)

// Name is the first argument by which the agent's executable knows that it is
// asked for the mailbox.
const Name = "mailbox"

// Main does what the words after [Name] ask for, and returns the exit code: 0
// with an answer on standard output, 1 where the box does not answer, 2 where the
// words make no sense.
func Main(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "version":
		_, err := io.WriteString(os.Stdout, mark+"\n")
		return coded(err)
	case len(args) == 2 && args[0] == "start":
		return coded(start(args[1]))
	case len(args) == 3 && args[1] == "box":
		return coded(hold(args[0], args[2]))
	case len(args) < 2:
		return 2
	}
	q, err := parseQuestion(args[1:])
	if err != nil {
		return 2
	}
	if q.verb == "open" {
		err = serve(args[0], q.user)
	}
	line := ""
	if err == nil {
		line, err = put(args[0], q)
	}
	if err == nil {
		_, err = io.WriteString(os.Stdout, line+"\n")
	}
	return coded(err)
}

// start starts an agent and leaves it to itself.
func start(user string) error {
	uid, err := parseUser(user)
	if err != nil {
		return err
	}
	proc, err := startAgent(uid)
	if err != nil {
		return err
	}
	return proc.Release()
}

func coded(err error) int {
	if err == nil {
		return 0
	}
	_, _ = io.WriteString(os.Stderr, "mailbox: "+err.Error()+"\n")
	return 1
}

// socketPath is where the box listens.
func socketPath(dir string) string { return filepath.Join(dir, "box") }

// put asks the box.
func put(dir string, q question) (string, error) {
	conn, err := dial(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(q.wait + giveWait + endWait + 10*time.Second))
	if err := q.write(conn); err != nil {
		return "", err
	}
	line, err := io.ReadAll(io.LimitReader(conn, 2*MaxTake))
	if err == nil && len(line) == 0 {
		err = errors.New("the box said nothing")
	}
	return string(line), err
}

func dial(dir string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socketPath(dir)}); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("connect", err)
	}
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "box"), nil
}

// serve starts the box, if there is none, and returns when it listens.
func serve(dir string, user int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if conn, err := dial(dir); err == nil {
		return conn.Close()
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	ready, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = ready.Close() }()
	proc, err := os.StartProcess(self, []string{agent.Name, Name, dir, "box", strconv.Itoa(user)}, &os.ProcAttr{
		Dir: "/", Env: agent.Env(), Files: []*os.File{null, null, null, ours}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	_ = ours.Close()
	if err != nil {
		return err
	}
	_ = proc.Release()
	b, _ := io.ReadAll(io.LimitReader(ready, 1000))
	if string(b) != listening {
		return errors.New("the box did not start: " + string(b))
	}
	return nil
}

const (
	self      = "/proc/self/exe"
	listening = "listening"
)

// hold is the box. Descriptor 3 is told how the start went.
func hold(dir, user string) error {
	// Programs may have our user: without this they could look into us.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	told := os.NewFile(3, "told")
	unix.CloseOnExec(3)
	uid, err := parseUser(user)
	if err != nil {
		return err
	}
	fd, err := listen(dir)
	if err != nil {
		_, _ = io.WriteString(told, err.Error())
		return err
	}
	// If memory runs out, a program must go and not we.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0)
	_, _ = io.WriteString(told, listening)
	_ = told.Close()
	b := &box{uid: uid}
	go b.expire(Lease / 10)
	b.accept(fd)
	return nil
}

func listen(dir string) (int, error) {
	path := socketPath(dir)
	_ = os.Remove(path) // of a box that is gone
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return -1, os.NewSyscallError("bind", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return -1, err
	}
	return fd, os.NewSyscallError("listen", unix.Listen(fd, 64))
}

// maxAsked bounds the questions that are answered at once.
const maxAsked = 32

// acceptPause is waited where nobody can be heard, for want of descriptors.
const acceptPause = 10 * time.Millisecond

func (b *box) accept(fd int) {
	slots := make(chan struct{}, maxAsked)
	for {
		slots <- struct{}{}
		conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			<-slots
			<-time.After(acceptPause)
			continue
		}
		cred, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
		f := os.NewFile(uintptr(conn), "asker")
		if err != nil || int(cred.Uid) != os.Geteuid() {
			_ = f.Close()
			<-slots
			continue
		}
		go func() {
			defer func() { <-slots }()
			defer func() { _ = f.Close() }()
			_ = f.SetDeadline(time.Now().Add(MaxWait + giveWait + endWait + 10*time.Second))
			if q, err := readQuestion(f); err == nil {
				_, _ = io.WriteString(f, b.ask(q).String())
			}
		}()
	}
}
