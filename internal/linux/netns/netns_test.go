package netns_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/netns"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"alone": alone, "denied": denied, "wait": wait})
}

// alone runs in a network namespace of its own.
func alone([]string) error {
	names, err := netns.Interfaces()
	if err != nil || !slices.Contains(names, "lo") || slices.Contains(names, "eth0") {
		return fmt.Errorf("interfaces %v: %w", names, err)
	}
	if conn, err := dialSelf(); err == nil {
		_ = conn.Close()
		return errors.New("the loopback is up already")
	}
	for range 2 {
		if err := netns.Loopback(); err != nil {
			return err
		}
	}
	conn, err := dialSelf()
	if err != nil {
		return err
	}
	return conn.Close()
}

// dialSelf makes a packet go from the loopback to the loopback.
func dialSelf() (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return net.Dial("tcp", l.Addr().String())
}

func denied([]string) error {
	err := netns.Loopback()
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "set flags") {
		return fmt.Errorf("the loopback of others: %w", err)
	}
	return nil
}

func wait([]string) error {
	_, err := os.Stdin.Read(make([]byte, 1))
	return err
}

func TestLoopback(t *testing.T) {
	linuxtest.Need(t, netns.Probe())
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		c := linuxtest.Child{Name: "alone", User: user, Clone: unix.CLONE_NEWNET}
		if user {
			c.Clone |= unix.CLONE_NEWUSER
		}
		linuxtest.OK(t, c)
	})
}

func TestLoopbackNeedsPrivileges(t *testing.T) {
	linuxtest.OK(t, linuxtest.Child{Name: "denied", User: true})
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	err := netns.ProbeAt(dir)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(linux.RemedyOf(err), "CONFIG_NET_NS") {
		t.Errorf("without namespaces: %v", err)
	}
	for name, text := range map[string]string{"self/ns/net": "", "sys/user/max_net_namespaces": "0\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := netns.ProbeAt(dir); !strings.Contains(linux.RemedyOf(err), "max_net_namespaces") {
		t.Errorf("with none allowed: %v", err)
	}
}
