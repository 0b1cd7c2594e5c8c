package local_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

func TestInterpreters(t *testing.T) {
	const elf, shim = "\x7fELF", "#!/usr/bin/env bash\n"
	for name, c := range map[string]struct {
		files map[string]string
		found map[string]string // by lookPath
		want  []string          // the trees that are shown
	}{
		"none": {},
		"in /usr": {
			files: map[string]string{"usr/bin/python3": elf, "opt/py/bin/python3": elf},
			found: map[string]string{"python3": "opt/py/bin/python3"},
		},
		"a link": {
			files: map[string]string{"opt/py/bin/python3.12": elf, "links/python3": "->../opt/py/bin/python3.12"},
			found: map[string]string{"python3": "links/python3"},
			want:  []string{"opt/py"},
		},
		"a broken link": {
			files: map[string]string{"links/python3": "->nowhere"},
			found: map[string]string{"python3": "links/python3"},
		},
		"both": {
			files: map[string]string{"py/3/bin/python3": elf, "js/20/bin/node": elf},
			found: map[string]string{"python3": "py/3/bin/python3", "node": "js/20/bin/node"},
			want:  []string{"py/3", "js/20"},
		},
		"pyenv, its version": {
			files: map[string]string{
				".pyenv/shims/python3": shim, ".pyenv/version": "../3.99 3.11.4\n3.12.0\n",
				".pyenv/versions/3.11.4/bin/python3.11": elf, ".pyenv/versions/3.11.4/bin/python3": "->python3.11", ".pyenv/versions/3.12.0/bin/python3": elf,
			},
			found: map[string]string{"python3": ".pyenv/shims/python3"},
			want:  []string{".pyenv/versions/3.11.4"},
		},
		"pyenv, the newest": {
			files: map[string]string{".pyenv/shims/python3": shim, ".pyenv/version": "system\n", ".pyenv/versions/3.11.4/bin/python3": elf, ".pyenv/versions/3.12.0/bin/python3": elf},
			found: map[string]string{"python3": ".pyenv/shims/python3"},
			want:  []string{".pyenv/versions/3.12.0"},
		},
		"nodenv": {
			files: map[string]string{".nodenv/shims/node": shim, ".nodenv/version": "20.1.0", ".nodenv/versions/20.1.0/bin/node": elf, ".nodenv/versions/22.0.0/bin/node": elf},
			found: map[string]string{"node": ".nodenv/shims/node"},
			want:  []string{".nodenv/versions/20.1.0"},
		},
		"asdf": {
			files: map[string]string{".asdf/shims/python3": shim, ".asdf/installs/python/3.12.1/bin/python3": elf, ".asdf/installs/nodejs/20/bin/node": elf},
			found: map[string]string{"python3": ".asdf/shims/python3"},
			want:  []string{".asdf/installs/python/3.12.1"},
		},
		"a shim of nothing": {
			files: map[string]string{".pyenv/shims/python3": shim, ".pyenv/versions/3.12.0/bin/python3": shim},
			found: map[string]string{"python3": ".pyenv/shims/python3"},
		},
		"a script that is no shim": {
			files: map[string]string{"wrapped/bin/python3": shim},
			found: map[string]string{"python3": "wrapped/bin/python3"},
		},
		"somebody's home": {
			files: map[string]string{"somebody/bin/python3": elf, "somebody/.ssh/id": "secret"},
			found: map[string]string{"python3": "somebody/bin/python3"},
		},
		"the hidden place in it": {
			files: map[string]string{"somebody/.local/bin/python3": elf},
			found: map[string]string{"python3": "somebody/.local/bin/python3"},
		},
		"our home": {
			files: map[string]string{"home/bin/python3": elf},
			found: map[string]string{"python3": "home/bin/python3"},
		},
		"above our home": {
			files: map[string]string{"bin/node": elf, "home/x": ""},
			found: map[string]string{"node": "bin/node"},
		},
		"loose": {
			files: map[string]string{"data/tools/node": elf},
			found: map[string]string{"node": "data/tools/node"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(tree(t, c.files))
			must(t, err)
			t.Setenv("HOME", filepath.Join(top, "home"))
			var r fence.Root
			path := local.AddInterpreters(&r, top, func(name string) (string, error) {
				if file, ok := c.found[name]; ok {
					return filepath.Join(top, file), nil
				}
				return "", errors.New("not found")
			})
			var shown, want []string
			for i, b := range r.Binds {
				if b.Source != b.Path || !b.Dir || path[i] != filepath.Join(b.Path, "bin") {
					t.Errorf("shown as %+v, searched at %s", b, path[i])
				}
				shown = append(shown, strings.TrimPrefix(b.Source, top+"/"))
			}
			want = c.want
			if !cmp.Equal(want, shown) {
				t.Errorf("shown are %v, want %v", shown, want)
			}
			if len(shown) > 0 && r.Dirs[len(r.Dirs)-1].Path != filepath.Dir(r.Binds[len(r.Binds)-1].Path) {
				t.Errorf("directories %v", r.Dirs)
			}
		})
	}
}
