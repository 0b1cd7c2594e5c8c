package escape

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// hostNames returns names by which a path of the host might be reached.
func hostNames(name string) []string {
	names := []string{name, "/" + up + name[1:], up + name[1:], "/proc/self/root" + name, "/proc/self/cwd/" + up + name[1:], "/proc/1/root" + name, "/proc/1/cwd/" + up + name[1:]}
	const enough = 100 // a sandbox has few processes
	dirs := visible()
	for _, dir := range dirs[:min(enough, len(dirs))] {
		names = append(names, dir+"/root"+name, dir+"/cwd/"+up+name[1:])
	}
	return names
}

func readOutside(m mission) verdict {
	var t tally
	for _, name := range hostNames(m.Secret) {
		text, err := content(name)
		switch {
		case err == nil && bytes.Contains(text, []byte(m.Token)):
			t.through("read " + name)
		case err != nil:
			t.stop(meaning(err), "")
		}
	}
	return t.verdict()
}

// systemDirs are directories that belong to the host in most sandboxes.
var systemDirs = []string{
	"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin",
	"/usr/lib", "/usr/local", "/usr/local/bin", "/usr/share", "/var", "/var/lib", "/var/log", "/var/tmp",
}

// writeHost tells the host which files it made; only the host knows whose
// they are.
func writeHost(m mission) verdict {
	var t tally
	for _, dir := range append(hostNames(filepath.Dir(m.Secret)), systemDirs...) {
		name := filepath.Join(dir, Name+"-was-here")
		if dir != filepath.Clean(dir) {
			name = dir + "/" + filepath.Base(name) // the dots matter
		}
		err := os.WriteFile(name, []byte(m.Token), 0o600)
		if err != nil {
			t.stop(meaning(err), "")
			continue
		}
		say(wordFact + name)
	}
	for _, name := range hostNames(m.Secret) {
		if err := os.WriteFile(name, []byte("overwritten"), 0o600); err != nil {
			t.stop(meaning(err), "")
		}
		_ = os.Rename(name, name+".moved") // the host looks
		_ = os.Remove(name)
	}
	return t.verdict()
}

// tellMounts tells the host what is mounted here.
func tellMounts(mission) verdict {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return heldBy("no /proc to look in: " + errnoName(err))
	}
	for line := range strings.Lines(string(text)) {
		say(wordFact + strings.TrimSpace(line))
	}
	return heldBy("looked at the mounts")
}

func hardLinks(m mission) verdict {
	var t tally
	targets := append(hostNames(m.Secret), "/etc/shadow", "/etc/passwd", "/usr/bin/su", "/usr/bin/sudo", "/proc/1/exe", "/proc/self/exe")
	for _, target := range targets {
		for _, follow := range []int{0, unix.AT_SYMLINK_FOLLOW} {
			err := unix.Linkat(unix.AT_FDCWD, target, unix.AT_FDCWD, "hard-link", follow)
			if err != nil {
				t.stop(meaning(err), "")
				continue
			}
			text, _ := content("hard-link")
			_ = os.Remove("hard-link")
			// A link to a symbolic link, or to what is the sandbox's own, is none
			// of the host's business.
			if bytes.Contains(text, []byte(m.Token)) || strings.HasPrefix(target, "/usr") || strings.HasPrefix(target, "/etc") {
				t.through("linked " + target)
			}
		}
	}
	return t.verdict()
}

func deviceNodes(mission) verdict {
	var t tally
	for _, dir := range []string{"/workspace", "/tmp", "/dev/shm", "/dev"} {
		for name, node := range map[string]struct {
			mode         uint32
			major, minor uint32
		}{
			"mem": {unix.S_IFCHR, 1, 1}, "kmsg": {unix.S_IFCHR, 1, 11}, "sda": {unix.S_IFBLK, 8, 0}, "vda": {unix.S_IFBLK, 254, 0}, "loop": {unix.S_IFBLK, 7, 0},
		} {
			path := filepath.Join(dir, "node-"+name)
			err := unix.Mknod(path, node.mode|0o666, int(unix.Mkdev(node.major, node.minor)))
			if err != nil {
				t.stop(errnoName(err), "mknod")
				continue
			}
			t.through("made the device " + path)
			_ = os.Remove(path)
		}
	}
	return t.verdict()
}

// harmlessDevices are what programs need.
var harmlessDevices = []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx"}

// maxVisited bounds how much of a tree is looked at.
const maxVisited = 20_000

func openDevices(mission) verdict {
	var t tally
	visited := 0
	_ = filepath.WalkDir("/dev", func(name string, d os.DirEntry, err error) error {
		if visited++; visited > maxVisited {
			return filepath.SkipAll
		}
		if err != nil {
			t.stop(meaning(err), name)
			return nil
		}
		if d.Type()&os.ModeDevice == 0 || strings.HasPrefix(name, "/dev/pts/") {
			return nil
		}
		for _, harmless := range harmlessDevices {
			if name == "/dev/"+harmless {
				return nil
			}
		}
		for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY} {
			if by := reachable(name, flags); by != "" {
				t.stop(by, name)
			} else {
				t.through("opened " + name)
			}
		}
		return nil
	})
	if len(t.stops) == 0 {
		t.stop("/dev has no device but the harmless ones", "")
	}
	return t.verdict()
}

// swapNames swaps a directory and a link to the root until it is killed.
func swapNames(mission) verdict {
	_ = os.Mkdir("swap", 0o755)
	if err := os.Symlink("/", "other"); err != nil && !errors.Is(err, os.ErrExist) {
		return breach("symlink: " + err.Error())
	}
	say("ready")
	for {
		err := unix.Renameat2(unix.AT_FDCWD, "swap", unix.AT_FDCWD, "other", unix.RENAME_EXCHANGE)
		if errors.Is(err, syscall.ENOENT) {
			_ = os.MkdirAll("swap", 0o755) // a call removed it
			_ = os.Symlink("/", "other")
		}
	}
}
