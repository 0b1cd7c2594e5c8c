package local_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// shownAt are the binds of a root, without the directories that they are from.
func shownAt(r fence.Root, tops ...string) (binds []fence.Bind) {
	relative := func(path string) string {
		for i, top := range tops {
			if rest, err := filepath.Rel(top, path); err == nil && filepath.IsLocal(rest) {
				return string(rune('A'+i)) + "/" + rest
			}
		}
		return path
	}
	for _, b := range r.Binds {
		b.Source, b.Over = relative(b.Source), slices.Clone(b.Over)
		for i := range b.Over {
			b.Over[i] = relative(b.Over[i])
		}
		binds = append(binds, b)
	}
	return binds
}

func TestTreeRoot(t *testing.T) {
	top := tree(t, map[string]string{
		"usr/bin/x": "x", "bin": "->usr/bin", "lib/y": "y", "file": "f", "srv/": "", "opt/tool/x": "x", "var/lib/x": "x", "etc/x": "x",
		"dev/sda": "x", "proc/x": "x", "run/x": "x", "tmp/x": "x", "workspace/x": "x", "mnt/x": "x", "sys/x": "x",
		"home": "->/proc/self/root", "root": "a file",
	})
	r, err := local.TreeRoot(top)
	must(t, err)
	want := []fence.Bind{
		{Source: "A/etc", Path: "/etc", Dir: true, Keep: true},
		{Source: "A/file", Path: "/file"},
		{Source: "A/lib", Path: "/lib", Dir: true},
		{Source: "A/opt", Path: "/opt", Dir: true},
		{Source: "A/usr", Path: "/usr", Dir: true},
		{Source: "A/var", Path: "/var", Dir: true, Keep: true},
	}
	if d := cmp.Diff(want, shownAt(r, top)); d != "" {
		t.Errorf("binds (-want +got):\n%s", d)
	}
	// What is a directory of ours stays one, whatever the tree says.
	for _, l := range r.Links {
		if l.Path == "/home" {
			t.Errorf("/home is a link to %s", l.To)
		}
	}
	if i := slices.IndexFunc(r.Links, func(l fence.Link) bool { return l.Path == "/bin" }); i < 0 || r.Links[i].To != "usr/bin" {
		t.Errorf("the links are %+v", r.Links)
	}
}

func TestLayerRoot(t *testing.T) {
	host := tree(t, map[string]string{
		"usr/bin/": "", "bin": "->usr/bin", "lib/x": "x", "etc/alternatives/x": "x", "etc/ld.so.cache": "host", "etc/services": "host", "etc/ssl/certs/x": "x",
	})
	layer := tree(t, map[string]string{
		"usr/bin/y": "y", "lib/y": "y", "etc/alternatives/y": "y", "etc/ld.so.cache": "layer", "etc/services": "layer", "etc/ssl/certs/y": "y", "etc/ssl/z": "z",
		"etc/passwd": "never", "etc/new/x": "x", "etc/link": "->new", "opt/a/x": "x", "tmp/x": "never", "dev/x": "never",
	})
	r, err := local.LayerRoot(host, layer)
	must(t, err)
	want := []fence.Bind{
		{Source: "A/usr", Path: "/usr", Dir: true, Over: []string{"B/usr"}},
		{Source: "A/lib", Path: "/lib", Dir: true, Over: []string{"B/lib"}},
		{Source: "A/etc/alternatives", Path: "/etc/alternatives", Dir: true, Over: []string{"B/etc/alternatives"}},
		{Source: "A/etc/ssl/certs", Path: "/etc/ssl/certs", Dir: true, Over: []string{"B/etc/ssl/certs"}},
		{Source: "B/etc/ld.so.cache", Path: "/etc/ld.so.cache"},
		{Source: "B/etc/new", Path: "/etc/new", Dir: true},
		{Source: "B/etc/services", Path: "/etc/services"},
		{Source: "B/etc/ssl/z", Path: "/etc/ssl/z"},
		{Source: "B/opt/a", Path: "/opt/a", Dir: true},
	}
	if d := cmp.Diff(want, shownAt(r, host, layer)); d != "" {
		t.Errorf("binds (-want +got):\n%s", d)
	}
	for _, f := range r.Files {
		if f.Path == "/etc/services" {
			t.Errorf("the host's %s is still there", f.Path)
		}
	}
	for name, broken := range map[string]string{
		"a directory over a link": tree(t, map[string]string{"bin/x": "x"}),
		"a link over a directory": tree(t, map[string]string{"lib": "->usr/lib"}),
		"a file over a directory": tree(t, map[string]string{"usr": "file"}),
	} {
		_, err := local.LayerRoot(host, broken)
		wants(t, cove.Unavailable, err, name)
	}
}
