//go:build linux

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// TestDefencesAreMissed takes one defence away at a time. The attacks that it
// stops must then get through, or the battery could not tell it from a wall that
// fell; with all of them in place they must not.
func TestDefencesAreMissed(t *testing.T) {
	for defence, attacks := range map[string][]string{
		"filter":    {"keyrings", "userns_unshare", "calls_32bit", "kernel_lists", "kernel_keys", "kernel_queues", "filters_sockets", "filters_own", "file_locks", "core_dumps", "kernel_memory_hidden"},
		"processes": {"fork_bomb"},
		"network":   {"host_loopback"},
		"volumes":   {"volume_writes", "volume_links"},
		"private":   {"egress_private_names"},
		"kernel":    {"kernel_memory_locks", "kernel_memory_connections"},
		"locks":     {"shared_locks"},
	} {
		t.Run(defence, func(t *testing.T) {
			for _, attack := range attacks {
				for _, weak := range []bool{true, false} {
					f := attempt(t, defence, weak, attack)
					if f.Skipped != "" {
						t.Skipf("%s: %s", attack, f.Skipped)
					}
					if f.GotThrough() != weak || strings.Contains(f.Detail, "inconclusive") {
						t.Errorf("%s, with the defence left out: %t: %+v", attack, weak, f)
					}
				}
			}
		})
	}
}

func attempt(t *testing.T, defence string, weak bool, attack string) escape.Finding {
	t.Helper()
	if err := open(t).Close(); err != nil { // which skips where nothing can be tried
		t.Fatal(err)
	}
	f, err := breakInto(t.Context(), t.TempDir(), defence, weak, attack)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// breakInto makes one attack on a provider, with or without a defence.
func breakInto(ctx context.Context, dir, defence string, weak bool, attack string) (f escape.Finding, err error) {
	cfg := local.Config{Dir: dir}
	switch {
	case weak && defence == "private":
		cfg.Egress.Private = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	case weak:
		cfg.Weaken(defence)
	}
	p, err := local.New(cfg)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return escape.RunOne(ctx, p, attack, escape.Exec, escape.Options{})
}

// TestReadOnlyReachesSubmounts mounts something that can be written to below
// the host's /usr, in a mount namespace of its own. A sandbox must find it read-
// only; one whose root is only read-only at its top must be found out.
func TestReadOnlyReachesSubmounts(t *testing.T) { missed(t, "submount") }

// TestSettingsOfTheHostAreOutOfReach has npm's settings for all users of a host be
// nowhere in a sandbox, with the credentials in them.
func TestSettingsOfTheHostAreOutOfReach(t *testing.T) { missed(t, "settings") }

// missed has a child make an attack with a defence left out, and with it.
func missed(t *testing.T, child string) {
	t.Helper()
	linuxtest.NeedRoot(t)
	for _, weak := range []bool{true, false} {
		out := linuxtest.OK(t, linuxtest.Child{Name: child, Args: []string{t.TempDir(), strconv.FormatBool(weak)}, Clone: unix.CLONE_NEWNS})
		var f escape.Finding
		if err := json.Unmarshal([]byte(out), &f); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		if f.GotThrough() != weak {
			t.Errorf("with the defence left out: %t: %+v", weak, f)
		}
	}
}

// submount is the child of the test above.
func submount(args []string) error {
	if err := mount.Private("/"); err != nil {
		return err
	}
	if err := (mount.Tmpfs{Size: 1 << 20, Files: 16, Mode: 0o777}).Mount("/usr/share"); err != nil {
		return err
	}
	return tell(args, "recursion", "submounts")
}

// settings is the child of the test after it. Nothing of it is on the host.
func settings(args []string) error {
	if err := mount.Private("/"); err != nil {
		return err
	}
	if err := (mount.Tmpfs{Size: 1 << 20, Files: 16, Mode: 0o755}).Mount("/usr/local"); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir("/usr/local/etc", 0o755), os.WriteFile("/usr/local/etc/npmrc", []byte("_authToken=secret\n"), 0o644),
		os.WriteFile("/usr/local/pip.conf", []byte("[global]\nindex-url=https://user:secret@example.com\n"), 0o644)); err != nil {
		return err
	}
	return tell(args, "settings", "host_settings")
}

// tell makes an attack with what a child was told, and tells what came of it.
func tell(args []string, defence, attack string) error {
	f, err := breakInto(context.Background(), args[0], defence, args[1] == "true", attack)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}
