package escape

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

func nameAttacks() []Attack {
	return []Attack{
		{Name: "file_names", Try: "read and write files of the host by .. and absolute names in calls on files", Via: byFiles, run: hostileNames},
		{Name: "kernel_files", Try: "read what /proc and /sys say of the agent by calls on files, also through links", Via: byFiles, run: kernelFiles},
		{Name: "archive_names", Try: "unpack archives with .., absolute names, links and devices", Via: byFiles, run: hostileArchives},
		{Name: "link_race", Try: "swap a directory and a link while calls on files go through it", Via: byExec, own: fresh, armed: true, run: linkRace},
	}
}

var up = strings.Repeat("../", 40)

func hostileNames(ctx context.Context, r *round) verdict {
	f := r.box.Files()
	below := strings.TrimPrefix(r.secret(), "/")
	names := []string{r.secret(), up + below, "a/../" + up + below, cove.WorkspacePath + "/" + up + below, "/proc/1/root/" + below, "/proc/self/root/" + below, "/proc/self/cwd/" + up + below}
	v := heldBy("names are resolved inside the sandbox")
	for _, name := range names {
		if text := read(ctx, f, name); strings.Contains(text, r.token) {
			return breach("read a file of the host as " + name)
		}
		// It may be made inside, where it is the sandbox's own.
		_ = f.Write(ctx, name, strings.NewReader("overwritten"), 0o644)
		_ = f.Move(ctx, name, "moved")
		_ = f.Remove(ctx, name)
		v = v.also(r.unharmed())
	}
	for info, err := range f.List(ctx, path.Dir(r.secret()), 1) {
		if err == nil && path.Base(info.Path) == socketName {
			return breach("listed a directory of the host")
		}
	}
	_ = f.Remove(ctx, r.dir)
	return v.also(r.unharmed())
}

// kernelFiles looks at the process that serves calls on files. A program sees itself
// below /proc/self; a call on files would see the agent.
func kernelFiles(ctx context.Context, r *round) verdict {
	f := r.box.Files()
	var links []*tar.Header
	names := []string{"/proc/self/maps", "/proc/self/environ", "/proc/self/exe", "/proc/1/status", "/proc/self/root/proc/self/maps", "/sys/kernel/notes"}
	for i, name := range names {
		link := fmt.Sprintf("to-kernel-%d", i)
		links = append(links, &tar.Header{Name: link, Linkname: name, Typeflag: tar.TypeSymlink, Mode: 0o777})
		names = append(names, link)
	}
	for _, dir := range []string{"/proc/self", "/proc/self/task", "/proc", "/"} {
		link := "to-dir" + strings.ReplaceAll(dir, "/", "-")
		links = append(links, &tar.Header{Name: link, Linkname: dir, Typeflag: tar.TypeSymlink, Mode: 0o777})
	}
	_ = f.Unpack(ctx, ".", bytes.NewReader(pack(links))) // where it fails, the names alone are tried
	names = append(names, "to-dir-proc-self/maps", "to-dir-proc/self/maps", "to-dir-/proc/self/maps", "/dev/fd/0")
	for _, name := range names {
		if text := read(ctx, f, name); text != "" {
			return breach("read " + name + ": " + clip(text))
		}
	}
	for _, dir := range []string{"/proc/self", "to-dir-proc-self", "to-dir-proc/self", "/proc/self/fd"} {
		for info, err := range f.List(ctx, dir, 2) {
			if err == nil {
				return breach("listed " + info.Path)
			}
		}
		if info, err := f.Stat(ctx, dir+"/exe"); err == nil {
			return breach("the agent's program is " + clip(info.Link))
		}
		if in, err := f.Archive(ctx, dir); err == nil {
			_ = in.Close() // it was only opened
			return breach("archived " + dir)
		}
	}
	return heldBy("calls on files do not enter /proc and /sys")
}

// read returns the beginning of a file, or nothing.
func read(ctx context.Context, f cove.Files, name string) string {
	in, err := f.Read(ctx, name, 0, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = in.Close() }() // it was only read
	text, _ := io.ReadAll(io.LimitReader(in, 4096))
	return string(text)
}

func hostileArchives(ctx context.Context, r *round) verdict {
	secret, below := r.secret(), strings.TrimPrefix(r.secret(), "/")
	file := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 4}
	}
	link := func(kind byte, name, to string) *tar.Header {
		return &tar.Header{Name: name, Linkname: to, Typeflag: kind, Mode: 0o777}
	}
	refused := 0
	archives := map[string][]*tar.Header{
		"an absolute name":    {file(secret)},
		"..":                  {file(up + below)},
		".. in the middle":    {file("a/../" + up + below)},
		"a hard link":         {link(tar.TypeLink, "hard", secret), file("hard")},
		"a hard link by ..":   {link(tar.TypeLink, "hard", up+below), file("hard")},
		"through a link":      {link(tar.TypeSymlink, "l", path.Dir(secret)), file("l/secret")},
		"through a link of /": {link(tar.TypeSymlink, "l", "/"), file("l/" + below)},
		"over a link":         {link(tar.TypeSymlink, "l", secret), file("l")},
		"a device":            {{Name: "dev", Typeflag: tar.TypeBlock, Devmajor: 8, Mode: 0o666}},
		"setuid":              {{Name: "suid", Typeflag: tar.TypeReg, Mode: 0o6755, Size: 4, Uid: 0}},
	}
	for what, headers := range archives {
		if err := r.box.Files().Unpack(ctx, "box", bytes.NewReader(pack(headers))); err != nil {
			refused++
		}
		if v := r.unharmed(); !v.held {
			return breach(v.detail + " by an archive with " + what)
		}
		_ = r.box.Files().Remove(ctx, "box") // it may not be there
	}
	return heldBy(fmt.Sprintf("%d of %d archives refused, the others stayed inside", refused, len(archives)))
}

func pack(headers []*tar.Header) []byte {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		if err := w.WriteHeader(h); err == nil && h.Size > 0 {
			_, _ = w.Write([]byte("evil")[:h.Size]) // into memory
		}
	}
	_ = w.Close()
	return buf.Bytes()
}

// raceTime is how long names are swapped under the calls.
const raceTime = 600 * time.Millisecond

// linkRace calls on files whose names the attacker changes at the same time
// between a directory of its own and a link to the root.
func linkRace(ctx context.Context, r *round) verdict {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := newOutput()
	p, err := r.start(ctx, out, usualLimits, cove.WorkspacePath+"/"+Name, "swap", "{}")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = p.Kill(context.WithoutCancel(ctx)) }() // the sandbox goes anyway
	select {
	case <-out.wrote:
	case <-ctx.Done():
		return failed(ctx.Err())
	}
	if strings.Contains(out.String(), "BREACH") {
		return untold(clip(out.String()))
	}
	f, below := r.box.Files(), strings.TrimPrefix(r.secret(), "/")
	over := time.NewTimer(raceTime)
	defer over.Stop()
	for rounds := 1; ; rounds++ {
		name := "swap/" + below
		if strings.Contains(read(ctx, f, name), r.token) {
			return breach("read a file of the host through a link that was swapped in")
		}
		_ = f.Write(ctx, name, strings.NewReader("raced"), 0o644)
		_ = f.Unpack(ctx, "swap", bytes.NewReader(pack([]*tar.Header{{Name: below, Typeflag: tar.TypeReg, Mode: 0o644, Size: 4}})))
		_ = f.Remove(ctx, path.Dir(name))
		if v := r.unharmed(); !v.held {
			return v
		}
		select {
		case <-over.C:
			return heldBy(fmt.Sprintf("%d rounds: every name was resolved inside the sandbox", rounds))
		default:
		}
	}
}
