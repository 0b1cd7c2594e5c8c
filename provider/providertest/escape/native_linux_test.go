package escape_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestMain(m *testing.M) {
	if escape.Summoned(os.Args) {
		syscall.Exit(escape.Main(os.Args[1:])) // at once: the race detector would sleep first
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"attacker": playAttacker})
}

// playAttacker is the attacker without a sandbox, as an ordinary user.
func playAttacker(args []string) error {
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	for _, name := range args[2:] {
		_, _ = fmt.Fprintf(os.Stdout, "# %s\n", name)
		if code := escape.Main([]string{name, args[1]}); code != 0 {
			return fmt.Errorf("%s ended with %d", name, code)
		}
	}
	return nil
}

// TestNativeAttacks makes attacks as an ordinary user outside of any sandbox,
// where those that no kernel stops must say so: an attack that is held here
// shows nothing in a sandbox.
func TestNativeAttacks(t *testing.T) {
	bait := filepath.Join(shared(t), "secret")
	if err := os.WriteFile(bait, []byte("the-token"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key := l.Addr().(*net.TCPAddr).Port
	host, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	open := []string{"read_outside", "core_dumps", "sockets_netlink", "environment_leak", "capabilities", "proc_machine", "agent_signals", "volume_links", "volume_symlinks", "volume_writes", "filters_own", "filters_sockets", "file_locks"}
	other := []string{
		"hello", "write_outside", "submounts", "hard_links", "device_nodes", "devices", "proc_writes", "proc_secrets", "sys_writes", "namespaces", "setns", "host_settings",
		"agent_memory", "agent_trace", "agent_executable", "agent_limits", "priorities", "setuid", "userns_unshare", "userns_clone", "userns_clone3",
		"calls_32bit", "calls_x32", "mount", "mount_new", "chroot", "file_handles", "io_uring", "bpf", "perf", "userfaultfd", "keyrings", "machine",
		"terminal_input", "sockets_raw", "sockets_packet", "sockets_vsock", "sockets_alg", "sockets_rare", "host_loopback", "host_sockets",
		"host_abstract_sockets", "metadata_addresses", "other_files", "other_processes", "other_memory", "fork_bomb", "survivors_sibling",
		"zombie_bomb", "descriptor_bomb", "volume_remount", "volume_programs", "workspace_device", "kernel_lists", "kernel_keys", "kernel_queues", "open_files", "huge_pages",
	}
	read, write := volume(t, bait), volume(t, bait)
	mission, err := json.Marshal(map[string]any{
		"secret": bait, "token": "the-token", "tcp": []string{l.Addr().String()}, "udp": "127.0.0.1:9", "unix": "/nonexistent/socket", "abstract": "@cove-nobody",
		"pids": host, "key": min(key, 100), "read": read, "write": write,
	})
	if err != nil {
		t.Fatal(err)
	}
	text := linuxtest.OK(t, linuxtest.Child{
		Name: "attacker", User: true, Args: slices.Concat([]string{shared(t), string(mission)}, open, other), Env: []string{"COVE_ESCAPE_CANARY=the-token"},
	})
	for part := range strings.SplitSeq(text, "# ") {
		name, said, _ := strings.Cut(part, "\n")
		if name == "" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(said), "\n")
		verdict := lines[len(lines)-1]
		if name == "write_outside" {
			for _, line := range lines {
				if made, ok := strings.CutPrefix(line, "FACT "); ok {
					_ = os.Remove(made)
				}
			}
		}
		if !strings.HasPrefix(verdict, "HELD ") && !strings.HasPrefix(verdict, "BREACH ") {
			t.Errorf("%s has no verdict: %q", name, said)
		}
		if slices.Contains(open, name) && !strings.HasPrefix(verdict, "BREACH ") {
			t.Errorf("%s without a sandbox: %s", name, verdict)
		}
	}
}

// volume is a directory such as the battery shows to sandboxes.
func volume(t *testing.T, bait string) string {
	t.Helper()
	dir := shared(t)
	for _, name := range []string{dir + "/f", dir + "/dir/g"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.Chmod(filepath.Dir(name), 0o777), os.WriteFile(name, nil, 0o666), os.Chmod(name, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(bait, dir+"/away"), os.Symlink(dir+"/f", dir+"/across")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNativeAttacksOutward makes the attacks on a way out where there is none: in
// a network namespace with nothing in it.
func TestNativeAttacksOutward(t *testing.T) {
	linuxtest.NeedRoot(t)
	var names []string
	for _, a := range escape.Battery() {
		if strings.HasPrefix(a.Name, "egress_") {
			names = append(names, a.Name)
		}
	}
	const mission = `{"tcp":["127.0.0.1:9"],"udp":"127.0.0.1:9","names":["localhost:9","good.test","*.tunnel.test"]}`
	text := linuxtest.OK(t, linuxtest.Child{Name: "attacker", Args: slices.Concat([]string{shared(t), mission}, names), Clone: syscall.CLONE_NEWNET})
	if held, through := strings.Count(text, "\nHELD "), strings.Count(text, "\nBREACH the good server "); held+through != len(names) || through != 2 {
		t.Errorf("%d are held, and %d say that nothing is there: %s", held, through, text)
	}
}

// shared is a directory that an ordinary user can write to.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cove-shared-*") //nolint:usetesting // that of the test is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAttackerWithoutSense(t *testing.T) {
	for _, args := range [][]string{nil, {"hello"}, {"hello", "no json"}, {"teleport", "{}"}} {
		if code := escape.Main(args); code != 2 {
			t.Errorf("%q ends with %d", args, code)
		}
	}
	for args, want := range map[string]bool{"/workspace/cove-attacker": true, "cove-attacker": true, "./cove-attacker": true, "/usr/bin/cove": false, "": false} {
		if got := escape.Summoned([]string{args}); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
	if escape.Summoned(nil) {
		t.Error("nobody was summoned")
	}
}
