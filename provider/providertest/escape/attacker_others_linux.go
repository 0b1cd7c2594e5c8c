package escape

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// findEnvironment looks for a variable of the daemon in its own environment
// and in that of every process it sees.
func findEnvironment(m mission) verdict {
	var t tally
	if text, err := exec.CommandContext(context.Background(), "env").Output(); err != nil {
		t.stop(errnoName(err), "env")
	} else if bytes.Contains(text, []byte(canary)) || bytes.Contains(text, []byte(m.Token)) {
		t.through("the daemon's variable is in the program's environment")
	} else {
		t.stop("the program's environment is its own", "")
	}
	for _, dir := range visible() {
		text, err := content(dir + "/environ")
		switch {
		case err != nil:
			t.stop(meaning(err), "those of others")
		case bytes.Contains(text, []byte(m.Token)):
			t.through("the daemon's variable is in " + dir + "/environ")
		}
	}
	return t.verdict()
}

func readNeighbour(m mission) verdict {
	var t tally
	for _, file := range neighbourFiles {
		for _, name := range hostNames(file) {
			text, err := content(name)
			switch {
			case err != nil:
				t.stop(meaning(err), "")
			case bytes.Contains(text, []byte(m.Token)):
				t.through("read " + name + " of another sandbox")
				_ = os.WriteFile(name, []byte("overwritten"), 0o600)
			}
		}
	}
	return t.verdict()
}

// killNeighbour kills the processes that have a mark among their arguments.
func killNeighbour(m mission) verdict {
	var t tally
	for _, dir := range visible() {
		text, _ := content(dir + "/cmdline")
		pid, _ := strconv.Atoi(dir[len("/proc/"):])
		if pid == os.Getpid() || !strings.HasPrefix(string(text), "sleep\x00"+m.Token) {
			continue
		}
		t.through("saw process " + dir + " of another sandbox")
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if len(visible()) == 0 {
		return heldBy("no process is visible")
	}
	t.stop(strconv.Itoa(len(visible()))+" processes are visible, and none of another sandbox", "")
	return t.verdict()
}

// shareMemory offers everything by which sandboxes could meet, until it is
// killed.
func shareMemory(m mission) verdict {
	if id, err := unix.SysvShmGet(m.Key, 4096, unix.IPC_CREAT|0o666); err == nil {
		if at, err := unix.SysvShmAttach(id, 0, 0); err == nil {
			copy(at, m.Token)
		}
	}
	_ = queue(m, unix.O_CREAT|unix.O_RDWR)
	for network, address := range meetings(m) {
		if l, err := net.Listen(network, address); err == nil { //nolint:noctx // it takes no time
			go greet(l, m.Token)
		}
	}
	say("ready")
	<-time.After(time.Minute)
	return heldBy("")
}

func greet(l net.Listener, token string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, token) // whoever called has gone
		_ = c.Close()
	}
}

// meetings are addresses that both sandboxes know. The token is the host's
// secret, so the name is made of its other end.
func meetings(m mission) map[string]string {
	return map[string]string{"unix": "@cove-meeting-" + strconv.Itoa(m.Key), "tcp": "127.0.0.1:" + strconv.Itoa(1024+m.Key%60000)}
}

// queue opens a message queue.
func queue(m mission, flags int) error {
	return opened(unix.SYS_MQ_OPEN, cstring("cove-"+strconv.Itoa(m.Key)), uintptr(flags), 0o666, 0)()
}

func reachMemory(m mission) verdict {
	var t tally
	if id, err := unix.SysvShmGet(m.Key, 4096, 0); err != nil {
		t.stop(errnoName(err), "shared memory")
	} else if at, err := unix.SysvShmAttach(id, 0, 0); err == nil && bytes.HasPrefix(at, []byte(m.Token)) {
		t.through("read the shared memory of another sandbox")
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // it would stay on the host
	}
	if err := queue(m, unix.O_RDWR); err != nil {
		t.stop(errnoName(err), "a message queue")
	} else {
		t.through("opened a message queue of another sandbox")
		_ = sys(unix.SYS_MQ_UNLINK, cstring("cove-"+strconv.Itoa(m.Key)))() // it would stay on the host
	}
	for network, address := range meetings(m) {
		ctx, cancel := context.WithTimeout(context.Background(), dialTime)
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		cancel()
		if err != nil {
			t.stop(errnoName(err), "a "+network+" socket")
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(dialTime))
		said, _ := io.ReadAll(io.LimitReader(c, 64))
		_ = c.Close()
		if string(said) == m.Token {
			t.through("called a " + network + " socket of another sandbox")
		}
	}
	return t.verdict()
}

// sleeper starts a process that the host finds by its mark.
func sleeper(mark string, attr *syscall.SysProcAttr) (int, error) {
	path, err := exec.LookPath("sleep")
	if err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	files := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	return syscall.ForkExec(path, []string{"sleep", mark}, &syscall.ProcAttr{Env: syscall.Environ(), Files: files, Sys: attr})
}

func startSibling(m mission) verdict {
	pid, err := sleeper(m.Token, &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT, Setsid: true})
	if err != nil {
		return heldBy(errnoName(err) + " for clone with CLONE_PARENT")
	}
	say(wordFact + strconv.Itoa(pid))
	return heldBy("it was started, and the host looks")
}

// startMany starts processes and leaves them to the host to count.
func startMany(m mission) verdict {
	for n := range m.Key {
		if _, err := sleeper(m.Token, nil); err != nil {
			say(wordFact + strconv.Itoa(n))
			return heldBy(errnoName(err) + " after " + strconv.Itoa(n) + " processes")
		}
	}
	return breach(strconv.Itoa(m.Key) + " processes started")
}

// leaveMany starts processes that end at once, and buries none.
func leaveMany(m mission) verdict {
	path, err := exec.LookPath("true")
	if err != nil {
		return breach(err.Error())
	}
	for n := range m.Key {
		if _, err := syscall.ForkExec(path, []string{"true"}, nil); err != nil {
			say(wordFact + strconv.Itoa(n))
			return heldBy(errnoName(err) + " after " + strconv.Itoa(n) + " dead processes")
		}
	}
	return breach(strconv.Itoa(m.Key) + " dead processes")
}

// openMany opens descriptors up to what no machine needs.
func openMany(mission) verdict {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err == nil {
		l.Cur = l.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l) // as far as it goes
	}
	const enough = 1<<20 + 1
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for range enough {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return heldBy(errnoName(err) + " after " + strconv.Itoa(len(fds)) + " descriptors")
		}
		fds = append(fds, fd)
	}
	return breach(strconv.Itoa(enough) + " descriptors opened")
}
