package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// merged are the directories that are links into /usr on today's hosts.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// unneeded is left out: what is only read by people, and what configures services.
var unneeded = []string{
	"usr/share/doc/", "usr/share/info/", "usr/share/lintian/", "usr/share/man/",
	"etc/apparmor.d/", "etc/cron.d/", "etc/cron.daily/", "etc/cron.monthly/", "etc/cron.weekly/", "etc/default/", "etc/init.d/",
	"etc/logrotate.d/", "etc/pam.d/", "etc/rc", "etc/sudoers", "etc/systemd/",
}

// layer is what packages are unpacked to.
type layer struct {
	tree    *os.Root
	unpack  *rootfs.Unpacker
	choices map[string]choice // by the alternative's name
	scripts []string          // packages whose scripts were not run
	beside  map[string]bool   // tops that a layer has no place for
}

func newLayer(tree *os.Root, b rootfs.Bounds) *layer {
	l := &layer{tree: tree, unpack: rootfs.NewUnpacker(tree, b), choices: map[string]choice{}, beside: map[string]bool{}}
	l.unpack.Map = l.place
	return l
}

// place says where a file of a package goes: a layer lies over /usr, and has
// settings.
func (l *layer) place(name string) string {
	top, _, deep := strings.Cut(name, "/")
	if slices.Contains(merged, top) {
		name, top = "usr/"+name, "usr"
	}
	if top != "usr" && top != "etc" {
		if deep {
			l.beside[top] = true
		}
		return ""
	}
	for _, prefix := range unneeded {
		if strings.HasPrefix(name+"/", prefix) && path.Base(name) != "copyright" {
			return ""
		}
	}
	return name
}

// add unpacks one package.
func (l *layer) add(ctx context.Context, d deb) error {
	if err := members(ctx, "--fsys-tarfile", d.file, func(r io.Reader) error { return l.unpack.Layer(ctx, r) }); err != nil {
		return unreadable(d, err)
	}
	err := members(ctx, "--ctrl-tarfile", d.file, func(r io.Reader) error { return l.control(d, r) })
	return unreadable(d, err)
}

func unreadable(d deb, err error) error {
	if _, ours := errors.AsType[*cove.Error](err); err == nil || ours || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return cove.Wrap(cove.Invalid, err, "package %s cannot be read: %s", d.name, err)
}

// members reads one of the two tars of a package.
func members(ctx context.Context, which, file string, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()                                           // ends a program whose output nobody reads on
	cmd := exec.CommandContext(ctx, "dpkg-deb", which, file) //nolint:gosec // a file that apt fetched or the operator named
	said := &bounded{most: mostSaid}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := read(out); err != nil {
		cancel()
		_ = cmd.Wait() // it was killed
		return err
	}
	_, _ = io.Copy(io.Discard, out) // what stands behind the last entry
	if err := cmd.Wait(); err != nil {
		return errors.New(complaint(said.String(), err))
	}
	return nil
}

// mostScript bounds the script of a package.
const mostScript = 1 << 20

// control looks at what a package would run.
func (l *layer) control(d deb, r io.Reader) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch path.Clean(h.Name) {
		case "preinst", "postinst":
		default:
			continue
		}
		text, err := io.ReadAll(io.LimitReader(in, mostScript))
		if err != nil {
			return err
		}
		rest := l.alternatives(string(text))
		if does(rest) && !slices.Contains(l.scripts, d.name) {
			l.scripts = append(l.scripts, d.name)
		}
	}
}

// does reports whether a script does anything beside leaving.
func does(script string) bool {
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && line != "set -e" && line != "exit 0" && line != ":" {
			return true
		}
	}
	return false
}

// solid wants the tops of a layer to be directories: those of the host below are.
func (l *layer) solid() error {
	for _, top := range []string{"usr", "etc"} {
		if info, err := l.tree.Lstat(top); err == nil && !info.IsDir() {
			return cove.Errorf(cove.Invalid, "the packages make /%s something else than a directory", top).Remedy("use other packages, or an image")
		}
	}
	return nil
}

// choice is one alternative: links that lead to files.
type choice struct {
	priority int
	links    map[string]string
}

// alternatives takes the calls that make alternatives out of a script, and returns
// the script without them. Calls with variables stay.
func (l *layer) alternatives(script string) (rest string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	var b bytes.Buffer
	for line := range strings.Lines(script) {
		name, c, ok := alternative(line)
		if !ok {
			b.WriteString(line)
			continue
		}
		if old, there := l.choices[name]; !there || c.priority > old.priority {
			l.choices[name] = c
		}
	}
	return b.String()
}

// alternative reads update-alternatives --install LINK NAME PATH PRIORITY
// [--slave LINK NAME PATH]...
func alternative(line string) (name string, c choice, ok bool) {
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "", ";", " ").Replace(line))
	if strings.ContainsAny(line, "$`|&") {
		return "", c, false
	}
	i := slices.Index(words, "--install")
	if i < 1 || !slices.ContainsFunc(words[:i], func(w string) bool { return path.Base(w) == "update-alternatives" }) || len(words) < i+5 {
		return "", c, false
	}
	words = words[i+1:]
	if _, err := fmt.Sscanf(words[3], "%d", &c.priority); err != nil {
		return "", c, false
	}
	c.links = map[string]string{words[0]: words[2]}
	for rest := words[4:]; len(rest) >= 4 && rest[0] == "--slave"; rest = rest[4:] {
		c.links[rest[1]] = rest[3]
	}
	return words[1], c, true
}

// choose makes the links of the alternatives that were found.
func (l *layer) choose(ctx context.Context) error {
	for _, c := range l.choices {
		for link, to := range c.links {
			if err := l.choice(ctx, link, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *layer) choice(ctx context.Context, link, to string) error {
	if !path.IsAbs(link) || !path.IsAbs(to) {
		return nil
	}
	at, target := l.place(strings.TrimPrefix(path.Clean(link), "/")), l.place(strings.TrimPrefix(path.Clean(to), "/"))
	if at == "" || target == "" || at == target {
		return nil
	}
	if _, err := l.tree.Lstat(target); err != nil {
		return nil //nolint:nilerr // such as a page of a manual that was left out
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: at, Linkname: "/" + target, Mode: 0o777})
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return l.unpack.Layer(ctx, &b)
}

// notes says what a layer has not.
func (l *layer) notes() (notes []string) {
	if len(l.scripts) > 0 {
		slices.Sort(l.scripts)
		notes = append(notes, "scripts of packages were not run: "+strings.Join(l.scripts, ", "))
	}
	if len(l.beside) > 0 {
		tops := make([]string, 0, len(l.beside))
		for top := range l.beside {
			tops = append(tops, "/"+top)
		}
		slices.Sort(tops)
		notes = append(notes, "files outside of /usr and /etc were left out: "+strings.Join(tops, ", "))
	}
	if n := l.unpack.LeftOut(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d devices and the like were left out", n))
	}
	return notes
}
