//go:build linux

package gvisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// TestSettingsOfTheHostAreOutOfReach has npm's settings for all users of a host be
// nowhere in a sandbox, with the credentials in them.
func TestSettingsOfTheHostAreOutOfReach(t *testing.T) {
	linuxtest.NeedRoot(t)
	if err := closeLater(t, open(t)).Close(); err != nil { // which skips where nothing can be tried
		t.Fatal(err)
	}
	out := linuxtest.OK(t, linuxtest.Child{Name: "settings", Args: []string{t.TempDir(), program.Agent(t)}, Env: []string{runscVariable + "=" + os.Getenv(runscVariable)}, Clone: unix.CLONE_NEWNS})
	var f escape.Finding
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if f.GotThrough() || f.Skipped != "" {
		t.Errorf("%+v", f)
	}
}

// settings is the child of the test above. Nothing of it is on the host.
func settings(args []string) (err error) {
	if err := mount.Private("/"); err != nil {
		return err
	}
	over := filepath.Join(args[0], "over")
	if err := errors.Join(os.MkdirAll(over+"/local/etc", 0o755), os.WriteFile(over+"/local/etc/npmrc", []byte("_authToken=secret\n"), 0o644),
		os.WriteFile(over+"/local/pip.conf", []byte("[global]\nindex-url=https://user:secret@example.com\n"), 0o644),
		unix.Mount("overlay", "/usr", "overlay", 0, "lowerdir="+over+":/usr")); err != nil {
		return err
	}
	c := gvisor.Config{Dir: filepath.Join(args[0], "provider"), Agent: args[1]}
	c.SetOwn(os.Getenv(runscVariable))
	p, err := gvisor.New(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	f, err := escape.RunOne(context.Background(), p, "host_settings", escape.Exec, escape.Options{})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}
