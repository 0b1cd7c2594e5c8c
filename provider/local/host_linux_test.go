package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
	"github.com/cove-sandbox/cove/internal/linux/userns"
	"github.com/cove-sandbox/cove/provider/local"
)

// becomes says whether it can give sandboxes users of their own.
func becomes(args []string) error {
	if args[0] == "weak" {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		if err := unix.Capget(&header, &sets[0]); err != nil {
			return err
		}
		sets[0].Effective &^= 1 << unix.CAP_SETPCAP
		if err := unix.Capset(&header, &sets[0]); err != nil {
			return err
		}
	}
	_, err := fmt.Println(userns.CanLease()) //nolint:forbidigo // this is the report
	return err
}

func TestWhoCanBecome(t *testing.T) {
	for name, c := range map[string]struct {
		child linuxtest.Child
		want  bool
	}{
		"an ordinary user":         {linuxtest.Child{User: true, Args: []string{""}}, false},
		"root of a namespace":      {linuxtest.Child{User: true, Clone: unix.CLONE_NEWUSER, Args: []string{""}}, false},
		"root":                     {linuxtest.Child{Args: []string{""}}, true},
		"root without a privilege": {linuxtest.Child{Args: []string{"weak"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.child.User {
				linuxtest.NeedRoot(t)
			}
			if c.child.Clone != 0 {
				r := userns.Probe()
				linuxtest.Need(t, errors.Join(r.Create, r.Map))
			}
			c.child.Name = "becomes"
			if got := linuxtest.OK(t, c.child); got != strconv.FormatBool(c.want) {
				t.Errorf("it says %s", got)
			}
		})
	}
}

// TestGroupName: another version of this program must find what this one left.
func TestGroupName(t *testing.T) {
	if got := local.GroupName("/var/lib/cove/local"); got != "cove-647d8a05de3f" || got == local.GroupName("/var/lib/cove/other") {
		t.Errorf("the name is %s", got)
	}
	if !regexp.MustCompile(`^cove-[0-9a-f]{12}$`).MatchString(local.GroupName("")) {
		t.Error("not a plain name")
	}
}

// report is what a provider says of a host that cannot make sandboxes.
type report struct {
	Caps         cove.Capabilities
	Code, Remedy string // of Create
	Message      string
}

// noUserNamespaces forbids nothing else.
var noUserNamespaces = seccomp.Policy{Default: seccomp.Allow, Newer: seccomp.Allow, Rules: []seccomp.Rule{{
	Calls: []string{"clone", "unshare"},
	Cases: []seccomp.Case{{When: []seccomp.Check{{Mask: unix.CLONE_NEWUSER, In: []uint32{unix.CLONE_NEWUSER}}}, Then: seccomp.Fail(unix.EPERM)}},
	Else:  seccomp.Allow,
}}}

// poor makes this process one that cannot make user namespaces, and asks a
// provider.
func poor(args []string) error {
	switch args[0] {
	case "none left":
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return err
		}
	case "filtered", "hidden":
		policy := seccomp.Sandbox() // which hides clone3
		if args[0] == "filtered" {
			policy = noUserNamespaces
		}
		filter, err := policy.Compile()
		if err != nil {
			return err
		}
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if err := seccomp.Install(filter, true); err != nil {
			return err
		}
	}
	ctx := context.Background()
	p, err := local.New(local.Config{Dir: args[1]})
	if err != nil {
		return err
	}
	var r report
	if r.Caps, err = p.Probe(ctx); err != nil {
		return err
	}
	_, err = p.Create(ctx, cove.NewID(), cove.Spec{})
	r.Code, r.Remedy, r.Message = string(cove.CodeOf(err)), cove.RemedyOf(err), cove.MessageOf(err)
	_, prepared := p.Prepare(ctx, cove.Mold{Template: local.Base, Workspace: cove.WorkspaceMemory})
	if cove.CodeOf(prepared) != cove.CodeOf(err) {
		return fmt.Errorf("create: %w, prepare: %w", err, prepared)
	}
	return errors.Join(p.Close(), json.NewEncoder(os.Stdout).Encode(r))
}

func TestPoorHosts(t *testing.T) {
	for name, want := range map[string]string{"none left": "user.max_user_namespaces", "filtered": "seccomp", "hidden": "clone3"} {
		t.Run(name, func(t *testing.T) {
			have := userns.Probe()
			linuxtest.Need(t, errors.Join(have.Create, have.Map))
			child := linuxtest.Child{Name: "poor", Args: []string{name, openDir(t)}, User: true}
			if name == "none left" {
				child.Clone = unix.CLONE_NEWUSER
			}
			got := read[report](t, linuxtest.OK(t, child))
			if got.Caps.Ready || got.Caps.Why == "" || !strings.Contains(got.Caps.Remedy, want) {
				t.Errorf("the report says ready %t, because %q, and to do %q", got.Caps.Ready, got.Caps.Why, got.Caps.Remedy)
			}
			if got.Code != string(cove.Unavailable) || !strings.Contains(got.Remedy, want) || !strings.Contains(got.Message, "local") {
				t.Errorf("create gives %s %q, and to do %q", got.Code, got.Message, got.Remedy)
			}
		})
	}
}

// openDir is a directory that everybody can use.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cove-test-*") //nolint:usetesting // the tests' own is closed to others
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	return dir
}

func read[T any](t *testing.T, text string) (v T) {
	t.Helper()
	must(t, json.Unmarshal([]byte(text), &v))
	return v
}
