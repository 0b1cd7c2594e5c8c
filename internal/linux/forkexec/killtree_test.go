package forkexec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// hostile are programs that do not want to end, each with a word when it is
// ready.
var hostile = map[string]string{
	"plain":    `sleep 1000 & sleep 1000 & echo ready; wait`,
	"busy":     `(while :; do :; done) & echo ready; while :; do :; done`,
	"sessions": `setsid sleep 1000 & setsid sh -c 'sleep 1000; :' & echo ready; sleep 1000`,
	"orphans":  `(setsid sh -c '(sleep 1000 &) ; (setsid sleep 1000 &)' &) ; (sh -c 'sleep 1000 &' &) ; echo ready; sleep 1000`,
	"deaf":     `trap '' TERM INT HUP QUIT ALRM USR1 USR2; (while :; do sleep 1; done) & echo ready; while :; do sleep 1; done`,
	"stopped":  `sh -c 'kill -STOP $$; sleep 1000' & (setsid sh -c 'kill -STOP $$' &) ; echo ready; kill -STOP $$`,
	"chain":    `x='sh -c "$x" & exit'; export x; sh -c "$x" & echo ready; sleep 1000`,
	"zombies":  `x='sh -c "$x" & exit'; export x; sh -c "$x" & echo ready; exec sleep 1000`,
	"wakers":   `i=0; while [ $i -lt 8 ]; do setsid sh -c 'trap "" TERM; while :; do kill -CONT -1 2>/dev/null; done' & i=$((i+1)); done; echo ready; sleep 1000`,
	"crowd":    `i=0; while [ $i -lt 30 ]; do (setsid sh -c 'while :; do /bin/true; done' &) ; i=$((i+1)); done; echo ready; sleep 1000`,
	"bomb":     `b() { b | b & }; echo ready; b 2>/dev/null; sleep 1000`,
	"headless": "", // a Go program, see below
	"gone":     `sleep 1000 & (setsid sleep 1000 &) ; echo ready`,
}

// playHunt is pid 1 of its own namespace. It starts a hostile program, ends its
// tree, and looks whether anything is left.
func playHunt(args []string) error {
	if err := ownNamespace(); err != nil {
		return err
	}
	kind, unlimited := args[0], args[1] == "root"
	pid, err := startHostile(kind, unlimited)
	if err != nil {
		return err
	}
	switch kind {
	case "gone":
		return killSurvivors(pid)
	case "bomb":
		if pid, err = growBomb(pid); err != nil {
			return err
		}
	case "zombies":
		// The program reaps no child. Each process of the chain stays in the table.
		deadline := time.Now().Add(time.Minute)
		for n := 0; n < 300; {
			if time.Now().After(deadline) {
				return fmt.Errorf("the chain left %d entries in /proc within a minute", n)
			}
			entries, err := os.ReadDir("/proc")
			if err != nil {
				return err
			}
			n = len(entries)
		}
	}
	if err := forkexec.KillTree(context.Background(), pid); err != nil {
		return err
	}
	return nobodyLeft()
}

// startHostile starts a hostile program and waits until it is ready.
func startHostile(kind string, unlimited bool) (int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	c := forkexec.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", hostile[kind]}, Env: []string{"PATH=" + os.Getenv("PATH")},
		Files: []int{0, int(w.Fd()), 2}, Session: true, Reaper: true,
	}
	if kind == "headless" {
		c.Path, c.Argv, c.Env = "/proc/self/exe", []string{"headless"}, linuxtest.Env(linuxtest.Child{Name: "headless"})
	}
	if !unlimited {
		c.Limits = []forkexec.Limit{{Resource: unix.RLIMIT_NPROC, Soft: 200, Hard: 200}}
	}
	pid, err := forkexec.Start(&c)
	if err != nil {
		return 0, err
	}
	_ = w.Close()
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		return 0, fmt.Errorf("the program did not get ready: %w", err)
	}
	return pid, nil
}

// growBomb waits until a bomb has a hundred processes, and returns it. A process of a
// bomb that cannot fork ends, so a bomb that has met its limit can be over before its
// processes were counted. It is then replaced.
func growBomb(pid int) (int, error) {
	const idle = 5 // pid 1, the shell and its sleep, and self and thread-self, which lead to pid 1
	quiet := 0
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		n := strings.Count(processes(), "; ") + 1
		if n >= 100 {
			return pid, nil
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			return 0, fmt.Errorf("the bomb ended by itself: %w", err)
		}
		if n > idle {
			quiet = 0
			continue
		}
		time.Sleep(time.Millisecond)
		if quiet++; quiet < 100 {
			continue
		}
		quiet = 0
		err := forkexec.KillTree(context.Background(), pid)
		if err != nil {
			return 0, err
		}
		if pid, err = startHostile("bomb", false); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("no bomb had a hundred processes within a minute")
}

// ownNamespace gives pid 1 of a new namespace its /proc.
func ownNamespace() error { return errors.Join(mount.Private("/"), mount.Proc("/proc")) }

// killSurvivors is what an agent does about a run whose program ended before
// what it started.
func killSurvivors(pid int) error {
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		return err
	}
	survivors, err := forkexec.Children(os.Getpid())
	if err != nil {
		return err
	}
	if len(survivors) != 2 {
		return fmt.Errorf("%d survivors, want 2", len(survivors))
	}
	if err := forkexec.KillTree(context.Background(), survivors...); err != nil {
		return err
	}
	return nobodyLeft()
}

// nobodyLeft reaps what pid 1 inherited, and fails if anything still lives.
func nobodyLeft() error {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return nil
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case pid == 0:
			return fmt.Errorf("survivors: %s", processes())
		}
	}
}

func processes() string {
	var all []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if text, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err == nil {
			all = append(all, strings.Join(strings.Fields(string(text))[:4], " "))
		}
	}
	return strings.Join(all, "; ")
}

// headless ends its first thread and goes on with the others: to /proc it looks
// like a zombie.
func headless([]string) error {
	go func() {
		status := ""
		for !strings.Contains(status, ") Z ") {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", os.Getpid()))
			status = string(text)
		}
		_, _ = os.Stdout.WriteString("ready\n")
	}()
	// One of these gets the first thread; the others hold theirs.
	for range 32 {
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() == os.Getpid() {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
			select {}
		}()
	}
	<-time.After(time.Hour)
	return nil
}

func TestKillTree(t *testing.T) {
	linuxtest.Need(t, forkexec.Probe())
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("the hostile programs need setsid")
	}
	for kind := range hostile {
		t.Run(kind, func(t *testing.T) {
			linuxtest.Users(t, func(t *testing.T, user bool) {
				linuxtest.NoLeaks(t, "")
				child := linuxtest.Child{Name: "hunt", Args: []string{kind, "root"}, Clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
				if user && kind == "zombies" {
					t.Skip("the limit on processes of an ordinary user leaves no room for as many")
				}
				if user {
					child.User, child.Clone, child.Args[1] = true, child.Clone|unix.CLONE_NEWUSER, "user"
				} else if kind == "bomb" {
					t.Skip("root has no limit on processes without a control group")
				}
				linuxtest.OK(t, child)
			})
		})
	}
}

func TestKillTreeOfNothing(t *testing.T) {
	if err := forkexec.KillTree(t.Context()); err != nil {
		t.Error(err)
	}
	if err := forkexec.KillTree(t.Context(), 1<<22+1); err != nil {
		t.Errorf("a process that is not there: %v", err)
	}
}

func TestKillTreeGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pid, err := forkexec.Start(&forkexec.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", "sleep 1000 & wait"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Reaper: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := forkexec.KillTree(context.Background(), pid); err != nil {
			t.Error(err)
		}
		reap(t, pid)
	}()
	for {
		children, err := forkexec.Children(pid)
		if err != nil {
			t.Fatal(err)
		}
		if len(children) > 0 {
			break
		}
	}
	if err := forkexec.KillTree(ctx, pid); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "are left") {
		t.Errorf("a canceled hunt: %v", err)
	}
}

func TestChildren(t *testing.T) {
	pid, err := forkexec.Start(&forkexec.Command{Path: "/bin/cat", Argv: []string{"cat"}, Files: []int{waiting(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		reap(t, pid)
	}()
	for name, list := range map[string]func(int) ([]int, error){"lists": forkexec.Children, "scan": forkexec.ScanChildren} {
		if pids, err := list(os.Getpid()); err != nil || len(pids) != 1 || pids[0] != pid {
			t.Errorf("%s: children %v %v, want %d", name, pids, err, pid)
		}
		if pids, err := list(1<<22 + 1); err != nil || len(pids) != 0 {
			t.Errorf("%s: nobody has children %v %v", name, pids, err)
		}
	}
}

// waiting is a descriptor that never becomes readable.
func waiting(t *testing.T) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return int(r.Fd())
}

// expectForeignProc runs in a new pid namespace with the old /proc.
func expectForeignProc() error {
	err := forkexec.KillTree(context.Background(), 2)
	if err == nil || !strings.Contains(err.Error(), "process table") {
		return fmt.Errorf("KillTree with the /proc of others: %w", err)
	}
	if _, err := forkexec.Children(1); err == nil {
		return errors.New("Children with the /proc of others")
	}
	if err := forkexec.Probe(); err == nil || !strings.Contains(err.Error(), "cannot be found") {
		return fmt.Errorf("Probe with the /proc of others: %w", err)
	}
	return nil
}

func TestForeignProc(t *testing.T) {
	linuxtest.Users(t, func(t *testing.T, user bool) {
		child := linuxtest.Child{Name: "elsewhere", Clone: unix.CLONE_NEWPID, User: user}
		if user {
			child.Clone |= unix.CLONE_NEWUSER
		}
		linuxtest.OK(t, child)
	})
}
