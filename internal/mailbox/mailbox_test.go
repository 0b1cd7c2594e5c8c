//go:build linux

package mailbox_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/mailbox"
)

// alone says that this process has a network of its own: agents are found by a name
// in it.
const alone = "COVE_MAILBOX_ALONE"

// agentUser is nobody else on this host.
const agentUser = 61118

func TestMain(m *testing.M) {
	if os.Args[0] == agent.Name {
		if len(os.Args) > 1 && os.Args[1] == mailbox.Name {
			syscall.Exit(mailbox.Main(os.Args[2:]))
		}
		syscall.Exit(agent.Main(agent.DefaultFD))
	}
	if os.Args[0] == knock {
		syscall.Exit(knockAt(os.Args[1]))
	}
	if os.Getuid() == 0 && os.Getenv(alone) == "" {
		runtime.LockOSThread()
		if unix.Unshare(unix.CLONE_NEWNET) == nil {
			_ = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), alone+"=1"))
		}
	}
	os.Exit(m.Run())
}

// needRoot skips what only root can do: to open doors to somebody else's agent.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getenv(alone) == "" {
		t.Skip("only root can open doors to an agent, in a network of its own")
	}
}

func TestAnswers(t *testing.T) {
	for _, a := range []mailbox.Answer{
		{Status: mailbox.Live}, {Status: mailbox.Over, Given: 7, At: 1 << 40, Data: []byte("data \xff\n")}, {Status: mailbox.Gone, Data: bytes.Repeat([]byte{0}, mailbox.MaxTake)},
	} {
		got, err := mailbox.ParseAnswer(a.String())
		if err != nil || got.String() != a.String() {
			t.Errorf("%.60s comes back as %.60s, %v", a, got, err)
		}
	}
	good := mailbox.Answer{Status: mailbox.Live, Given: 1, At: 2, Data: []byte("hello")}.String()
	for name, line := range map[string]string{
		"nothing": "", "a text": "hello", "cut": good[:len(good)-1], "longer": good + "0", "two": good + " " + good, "another sum": good[:len(good)-8] + "00000000",
		"another number": strings.Replace(good, " 1 ", " 3 ", 1), "too long": good + strings.Repeat("x", 2*mailbox.MaxTake),
	} {
		if a, err := mailbox.ParseAnswer(line); err == nil {
			t.Errorf("%s is taken for %v", name, a)
		}
	}
}

func TestWordsThatMakeNoSense(t *testing.T) {
	for _, words := range [][]string{
		{},
		{"dir"},
		{"dir", "dance", "abc"},
		{"dir", "open", "abc"},
		{"dir", "open", "abc", "0"},
		{"dir", "open", "../x", "1000"},
		{"dir", "open", strings.Repeat("a", 65), "1000"},
		{"dir", "take", "abc", "x", "1"},
		{"dir", "take", "abc", "1"},
		{"dir", "give", "abc", "x"},
		{"dir", "give", "abc", "0", "not base64"},
		{"start", "0"},
		{"start", "root"},
	} {
		if code := mailbox.Main(words); code == 0 {
			t.Errorf("%q ends with 0", words)
		}
	}
	if code := mailbox.Main([]string{t.TempDir(), "take", "abc", "0", "1"}); code != 1 {
		t.Errorf("where there is no box, a question ends with %d", code)
	}
}

// stream is the host's side, without patience for what goes wrong.
type stream struct {
	t    *testing.T
	ask  func(words ...string) (mailbox.Answer, error)
	link string
	at   int64
	buf  []byte
	sent int64
}

func (s *stream) Read(b []byte) (int, error) {
	for len(s.buf) == 0 {
		a, err := s.ask("take", s.link, strconv.FormatInt(s.at, 10), "2000")
		if err != nil || a.Status == mailbox.Gone || a.Status == mailbox.Over && len(a.Data) == 0 {
			return 0, io.EOF
		}
		s.buf, s.at = a.Data, s.at+int64(len(a.Data))
	}
	n := copy(b, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

func (s *stream) Write(b []byte) (int, error) {
	args := append([]string{"give", s.link, strconv.FormatInt(s.sent, 10)}, mailbox.Pieces(b)...)
	for range 2 { // the second time changes nothing
		a, err := s.ask(args...)
		if err != nil || a.Status != mailbox.Live || a.Given != s.sent+int64(len(b)) {
			return 0, io.ErrClosedPipe
		}
	}
	s.sent += int64(len(b))
	return len(b), nil
}

func (s *stream) Close() error {
	_, err := s.ask("close", s.link)
	return err
}

// connected opens a link and greets the agent.
func connected(t *testing.T, ask func(words ...string) (mailbox.Answer, error), link string) *guest.Conn {
	t.Helper()
	for range 2 {
		if a, err := ask("open", link, strconv.Itoa(agentUser)); err != nil || a.Status != mailbox.Live {
			t.Fatalf("open gives %v, %v", a, err)
		}
	}
	door, err := guest.Door(t.Context(), &stream{t: t, ask: ask, link: link})
	if err != nil {
		t.Fatal(err)
	}
	c, err := guest.Connect(t.Context(), door, guest.Options{Dir: "/", Env: map[string]string{"PATH": "/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func prints(t *testing.T, c *guest.Conn, script, want string) {
	t.Helper()
	var out bytes.Buffer
	p, err := c.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 0 || out.String() != want {
		t.Errorf("%s gives %+v, %v and prints %q; want %q", script, r, err, out.String(), want)
	}
}

// ended shuts the agent down, so that the next test finds none.
func ended(t *testing.T, c *guest.Conn) {
	t.Helper()
	if err := c.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Logf("shutdown: %v", err)
	}
}

func TestBox(t *testing.T) {
	needRoot(t)
	b := mailbox.NewBox(agentUser)
	if a, err := b.Ask("take", "aa", "0", "0"); err != nil || a.Status != mailbox.Gone {
		t.Errorf("a link that never was gives %v, %v", a, err)
	}
	first := connected(t, b.Ask, "aa")
	prints(t, first, "id -u; grep NoNewPrivs /proc/self/status; grep CapBnd /proc/self/status; ulimit -c", "61118\nNoNewPrivs:\t1\nCapBnd:\t0000000000000000\n0\n")
	prints(t, first, "head -c 300000 /dev/zero | tr '\\0' x", strings.Repeat("x", 300000))
	second := connected(t, b.Ask, "bb")
	prints(t, second, "echo second", "second\n")
	if _, err := first.Start(t.Context(), cove.Command{Argv: []string{"true"}}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("the first host gets %v after the second came", err)
	}
	if a, err := b.Ask("open", "aa", "1000"); err != nil || a.Status != mailbox.Gone {
		t.Errorf("a link that was ended is opened again: %v, %v", a, err)
	}
	b.Forgotten()
	<-second.Done()
	third := connected(t, b.Ask, "cc")
	prints(t, third, "echo third", "third\n")
	ended(t, third)
}

// TestExecutable is the box as a process of its own, asked as from outside: by root,
// and by somebody whom nobody but itself protects from programs.
func TestExecutable(t *testing.T) {
	needRoot(t)
	for name, who := range map[string]*syscall.Credential{"root": nil, "nobody is root": {Uid: agentUser, Gid: agentUser}} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "mailbox-*") //nolint:usetesting // that of the test is root's alone
			if err == nil && who != nil {
				err = os.Chown(dir, agentUser, agentUser)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
			ask := func(words ...string) (mailbox.Answer, error) {
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
				cmd.Args = append([]string{agent.Name, mailbox.Name, dir}, words...)
				cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: who}
				out, err := cmd.Output()
				if err != nil {
					return mailbox.Answer{}, err
				}
				return mailbox.ParseAnswer(strings.TrimSuffix(string(out), "\n"))
			}
			c := connected(t, ask, "aa")
			prints(t, c, "echo inside; id -u", "inside\n61118\n")
			box := processes(t, dir)
			if len(box) != 1 {
				t.Fatalf("there are %d boxes", len(box))
			}
			address := protocol.Address
			if who != nil {
				address += "-" + strconv.Itoa(box[0])
			}
			strangerIsTurnedAway(t, address)
			prints(t, c, "echo still inside", "still inside\n")
			ended(t, c)
			_ = syscall.Kill(box[0], syscall.SIGKILL)
		})
	}
}

// knock is the name of a process that tries to be a door.
const knock = "knock"

// knockAt tries to be a door at the address, and is 0 where it is let in, 3 where it is
// turned away and 1 where nobody is there.
func knockAt(address string) int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: address})
	}
	if err == nil {
		err = unix.Sendmsg(fd, []byte{'+'}, unix.UnixRights(0, 1), nil, unix.MSG_NOSIGNAL)
	}
	if err != nil && !errors.Is(err, unix.EPIPE) {
		return 1
	}
	var b [1]byte
	if n, _ := unix.Read(fd, b[:]); n > 0 {
		return 0
	}
	return 3
}

// strangerIsTurnedAway wants no door that a process of the agent's own user opens.
func strangerIsTurnedAway(t *testing.T, address string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args, cmd.Dir = []string{knock, address}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agentUser, Gid: agentUser}}
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("a stranger at the agent's door ends with %d", code)
	}
}

// processes finds the boxes of a directory.
func processes(t *testing.T, dir string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, e := range entries {
		text, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		pid, perr := strconv.Atoi(e.Name())
		if err == nil && perr == nil && strings.HasPrefix(string(text), agent.Name+"\x00"+mailbox.Name+"\x00"+dir+"\x00box\x00") {
			found = append(found, pid)
		}
	}
	return found
}

func TestPieces(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 20000)
	var got []byte
	for _, p := range mailbox.Pieces(data) {
		b, err := base64.StdEncoding.DecodeString(p)
		if err != nil || len(p) > 128<<10-1 {
			t.Fatalf("a piece of %d bytes: %v", len(p), err)
		}
		got = append(got, b...)
	}
	if !bytes.Equal(got, data) {
		t.Error("the pieces are not the whole")
	}
}
