package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// host is the name that sandboxes have.
const host = "sandbox"

// mountPoints are what a sandbox puts something of its own on, or files of ours are
// in; places are the others that programs expect, which may also be links.
var (
	mountPoints = []string{"dev", "etc", "mnt", "proc", "run", "sys", "tmp", "usr", "var", "workspace"}
	places      = []string{"home", "opt", "root", "srv", "var/tmp"}
)

// settings are those files that say where a sandbox is.
var settings = map[string]string{
	"etc/hostname":      host + "\n",
	"etc/hosts":         "127.0.0.1 localhost " + host + "\n::1 localhost ip6-localhost\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
	"etc/resolv.conf":   "nameserver 198.18.0.1\noptions timeout:2 attempts:2\n",
}

// Tidy makes a tree one that a sandbox can have as its root: with the directories
// that something is put on, and with the user, the host and the name server that
// all sandboxes have.
func Tidy(root *os.Root) error {
	for _, dir := range slices.Concat(mountPoints, places) {
		if err := makeDir(root, dir, slices.Contains(places, dir)); err != nil {
			return fault(err, "the directory "+dir+" of the tree")
		}
	}
	for name, text := range settings {
		if err := replace(root, name, text); err != nil {
			return fault(err, "the file "+name+" of the tree")
		}
	}
	for name, lines := range map[string]map[string]string{
		"etc/passwd": {"0": "root:x:0:0:root:/root:/usr/sbin/nologin", "1000": "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh", "65534": "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin"},
		"etc/group":  {"0": "root:x:0:", "1000": "sandbox:x:1000:", "65534": "nogroup:x:65534:"},
	} {
		if err := replace(root, name, accounts(root, name, lines)); err != nil {
			return fault(err, "the file "+name+" of the tree")
		}
	}
	return nil
}

// makeDir makes sure that there is a directory, or a link where that will do.
func makeDir(root *os.Root, dir string, link bool) error {
	info, err := root.Lstat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil && link && info.Mode()&fs.ModeSymlink != 0:
		return nil
	case err == nil:
		err = root.Remove(dir)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = root.Mkdir(dir, 0o755)
	}
	if err == nil {
		err = root.Chmod(dir, 0o755)
	}
	return err
}

// replace writes a new file where there may be anything.
func replace(root *os.Root, name, text string) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// mostAccounts bounds a list of users that is read.
const mostAccounts = 1 << 20

// accounts is a list of users or groups of the tree with ours in it: who has one
// of our numbers or names is left out. In lines ours are by number.
func accounts(root *os.Root, name string, ours map[string]string) string {
	var b strings.Builder
	taken := map[string]bool{}
	for _, number := range []string{"0", "1000", "65534"} {
		b.WriteString(ours[number] + "\n")
		taken[strings.SplitN(ours[number], ":", 2)[0]] = true
	}
	for line := range strings.Lines(small(root, name)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(fields) < 4 || taken[fields[0]] || ours[fields[2]] != "" {
			continue
		}
		b.WriteString(strings.Join(fields, ":") + "\n")
	}
	return b.String()
}

// small reads a regular file of a tree; "" for anything else.
func small(root *os.Root, name string) string {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > mostAccounts {
		return ""
	}
	text, _ := root.ReadFile(name)
	return string(text)
}
