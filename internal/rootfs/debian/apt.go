package debian

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// Bounds of what other programs say.
const (
	mostOutput = 16 << 20
	mostSaid   = 8 << 10
)

// run starts a program of the host's package system and returns what it printed.
// Its error says what it complained about.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // names of ours, and arguments that were checked
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	cmd.WaitDelay = time.Second
	out, said := &bounded{most: mostOutput}, &bounded{most: mostSaid}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, errors.New(complaint(said.String(), err))
	case out.full:
		return nil, errors.New("it says more than anybody could read")
	}
	return out.Bytes(), nil
}

// complaint is what matters of what a program wrote before it failed.
func complaint(text string, err error) string {
	var found []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if words, ok := strings.CutPrefix(line, "E: "); ok {
			found = append(found, words)
		}
	}
	if len(found) > 0 {
		return strings.Join(found, "; ")
	}
	if text = strings.TrimSpace(text); text != "" {
		return text
	}
	return err.Error()
}

// bounded keeps the beginning of what is written.
type bounded struct {
	bytes.Buffer

	most int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); len(p) > room {
		b.full = true
		b.Buffer.Write(p[:room])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// uri is a line of apt-get --print-uris: where from, the file's name, its size.
var uri = regexp.MustCompile(`^'([^']+)' ([^ /]+_[^ /]+_[^ /]+\.deb) (\d+)`)

// resolve asks apt what the host lacks. What the host has stays as it is unless
// something needs a newer one.
func resolve(ctx context.Context, wanted []rootfs.Wanted, given []deb) ([]deb, error) {
	args := []string{"install", "--print-uris", "--quiet=2", "--yes", "--no-install-recommends", "--no-upgrade", "-o", "Debug::NoLocking=1", "--"}
	for _, w := range wanted {
		args = append(args, w.Name)
	}
	for _, d := range given {
		args = append(args, d.file)
	}
	out, err := run(ctx, "", "apt-get", args...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, cove.Wrap(cove.Invalid, err, "apt cannot find these packages: %s", err).Remedy("check the names; if the lists of packages are old, let root run apt-get update")
	}
	list := append([]deb{}, given...)
	for line := range strings.Lines(string(out)) {
		m := uri.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		d, ok := parse(m[2])
		if !ok {
			return nil, cove.Errorf(cove.Unavailable, "apt names a file that is no package: %.120q", m[2])
		}
		size, _ := strconv.ParseInt(m[3], 10, 62)
		d.size = cove.Bytes(size)
		if !has(given, d.name) {
			list = append(list, d)
		}
	}
	if len(list) > mostPackages {
		return nil, cove.Errorf(cove.Exhausted, "that would be %d packages; at most %d fit in a layer", len(list), mostPackages).Remedy("ask for less, or use an image")
	}
	return list, nil
}

func has(list []deb, name string) bool {
	for _, d := range list {
		if d.name == name {
			return true
		}
	}
	return false
}

// parse takes the name of a file apart: NAME_VERSION_ARCH.deb, with %3a for a
// colon.
func parse(file string) (d deb, ok bool) {
	parts := strings.Split(strings.TrimSuffix(file, ".deb"), "_")
	if len(parts) != 3 {
		return d, false
	}
	version, err := url.PathUnescape(parts[1])
	d = deb{name: parts[0], version: version, arch: parts[2]}
	return d, err == nil && goodPackage.MatchString(d.name+"="+d.version)
}

// recent wants the packages with a least version to have it, whether they are
// added or are on the host.
func recent(ctx context.Context, wanted []rootfs.Wanted, list []deb) error {
	for _, w := range wanted {
		if w.Least == 0 {
			continue
		}
		version := ""
		for _, d := range list {
			if d.name == w.Name {
				version = d.version
			}
		}
		if version == "" {
			out, err := run(ctx, "", "dpkg-query", "--show", "--showformat=${Version}", w.Name)
			if err != nil {
				return invalid(err, "the version of package %s is not known", w.Name)
			}
			version = string(out)
		}
		if rootfs.Major(version) < w.Least {
			return cove.Errorf(cove.Unsupported, "package %s would be version %s, and %d or later is needed", w.Name, version, w.Least).
				Remedy("add a source of packages that has it to apt, or use an image")
		}
	}
	return nil
}

// atOnce is how many packages one apt fetches: progress is told in between.
const atOnce = 8

// fetch gets the packages that are not there yet. apt compares their checksums with
// its signed lists.
func fetch(ctx context.Context, dir string, list []deb, tell func(Progress)) error {
	p := Progress{Step: "fetch", Total: len(list)}
	for _, d := range list {
		p.Of += d.size
	}
	for i := 0; i < len(list); i += atOnce {
		group := list[i:min(i+atOnce, len(list))]
		args := []string{"download", "--quiet=2", "-o", "APT::Sandbox::User=root", "--"}
		for _, d := range group {
			if d.file == "" {
				args = append(args, d.name+":"+d.arch+"="+d.version)
			}
		}
		p.Package = group[0].name
		tell(p)
		if len(args) > 5 {
			if _, err := run(ctx, dir, "apt-get", args...); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return cove.Wrap(cove.Unavailable, err, "packages cannot be fetched: %s", err).Remedy("check the network, and that apt-get update works")
			}
		}
		for _, d := range group {
			p.Bytes += d.size
		}
		p.Done += len(group)
		tell(p)
	}
	return locate(dir, list)
}

// locate finds the files that apt wrote.
func locate(dir string, list []deb) error {
	for i, d := range list {
		if d.file != "" {
			continue
		}
		name := d.name + "_" + strings.ReplaceAll(d.version, ":", "%3a") + "_" + d.arch + ".deb"
		found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), escapeGlob(name))) // the pattern is good
		if len(found) != 1 {
			return cove.Errorf(cove.Unavailable, "apt did not fetch %s %s, and did not say why", d.name, d.version)
		}
		list[i].file = found[0]
	}
	return nil
}

func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}
