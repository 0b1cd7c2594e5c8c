package local_test

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// store is a set of templates. It implements [local.Templates].
type store struct {
	mu   sync.Mutex
	have map[string]local.Template
	err  error // of Get
}

func (s *store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.have))
}

func (s *store) Lacking() []string { return []string{"template missing is not built"} }

func (s *store) Get(name string) (local.Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return local.Template{}, s.err
	}
	t, ok := s.have[name]
	if !ok {
		return t, cove.Errorf(cove.NotFound, "there is no template %q", name)
	}
	return t, nil
}

func (s *store) put(t local.Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.have[t.Name] = t
}

// treePrograms are what the tree template has.
var treePrograms = []string{
	"bash", "cat", "chmod", "dd", "echo", "env", "grep", "head", "id", "ls", "ln", "mkdir", "mv", "rm", "sh", "sleep", "sort", "stat", "stty", "tail", "touch", "tr", "true", "tty", "wc",
}

// systemTree is a small system in a directory: some programs of this host, and
// the libraries that they need.
func systemTree(t *testing.T) string {
	t.Helper()
	top := tree(t, map[string]string{
		"usr/bin/": "", "usr/lib/": "", "usr/lib64/": "", "bin": "->usr/bin", "lib": "->usr/lib", "lib64": "->usr/lib64",
		"etc/os-release": "ID=tree\n", "etc/passwd": "of:x:0:0:the:/:/tree\n", "etc/resolv.conf": "nameserver 192.0.2.1\n",
		"var/lib/word": "of the tree\n", "var/tmp/word": "hidden\n", "opt/tool/run": "#!/bin/sh\necho a tool of the tree\n", "srv/": "", ".marker": "",
		"proc/word": "never seen", "tmp/word": "never seen", "workspace/word": "never seen", "dev/null": "never seen",
	})
	libs := map[string]bool{}
	for _, name := range treePrograms {
		path, err := exec.LookPath(name)
		linuxtest.Need(t, err)
		copyFile(t, path, filepath.Join(top, "usr/bin", name))
		out, err := exec.CommandContext(t.Context(), "ldd", path).Output()
		must(t, err)
		for scan := bufio.NewScanner(strings.NewReader(string(out))); scan.Scan(); {
			for word := range strings.FieldsSeq(scan.Text()) {
				libs[word] = filepath.IsAbs(word)
			}
		}
	}
	for lib, is := range libs {
		if is {
			copyFile(t, lib, filepath.Join(top, "usr", strings.TrimPrefix(strings.TrimPrefix(lib, "/usr"), "/")))
		}
	}
	return top
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, text, 0o755))
}

// layerTree is a layer with a little of everything.
func layerTree(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"usr/bin/layered":      "#!/bin/sh\necho from the layer\n",
		"usr/share/cove/word":  "shared\n",
		"usr/lib/os-release":   "ID=layered\n",
		"etc/layered.conf":     "conf\n",
		"etc/alternatives/own": "->/usr/bin/layered",
		"etc/passwd":           "of:x:0:0:the:/:/layer\n",
		"etc/ssl/own.cnf":      "ssl\n",
		"etc/services":         "cove 1/tcp\n",
		"etc/link":             "->layered.conf",
		"opt/own/run":          "#!/bin/sh\necho a tool\n",
		"var/lib/own/word":     "state\n",
		"tmp/word":             "never seen",
		"workspace/word":       "never seen",
	})
}

// templates makes one of each kind.
func templates(t *testing.T) *store {
	t.Helper()
	s := &store{have: map[string]local.Template{}}
	s.put(local.Template{Name: "python", Digest: "1", Kind: local.KindHost, Env: map[string]string{"FLAVOR": "python"}, Path: []string{"/opt/python/bin"}})
	s.put(local.Template{Name: "layer", Digest: "2", Kind: local.KindLayer, Tree: layerTree(t), Env: map[string]string{"FLAVOR": "layer"}, Path: []string{"/opt/own"}})
	s.put(local.Template{Name: "tree", Digest: "3", Kind: local.KindTree, Tree: systemTree(t), Env: map[string]string{"FLAVOR": "tree", "PATH": "/usr/bin"}, Path: []string{"/opt/tool"}})
	return s
}

func openWith(t *testing.T, cfg local.Config) *local.Provider {
	t.Helper()
	cfg.Dir = providertest.Dir(t)
	p, err := local.New(cfg)
	must(t, err)
	providertest.Ready(t, p)
	return p
}

func TestTemplates(t *testing.T) {
	s := templates(t)
	providertest.Run(t, func(t *testing.T) cove.Provider { return openWith(t, local.Config{Templates: s, Keeper: true}) },
		tier.Pick([]string{"templates"}, "templates", "spec")...)
}

func TestTemplatesOnce(t *testing.T) {
	tier.Full(t, "TestTemplates uses the same templates with a spawner")
	linuxtest.NeedRoot(t)
	s := templates(t)
	providertest.Run(t, func(t *testing.T) cove.Provider { return openWith(t, local.Config{Templates: s, Once: true}) }, "templates", "solo")
}

// TestTemplateTree is about programs in a tree, with nothing of the host.
func TestTemplateTree(t *testing.T) {
	tier.Full(t, "TestTemplates runs programs from each kind of template")
	s := templates(t)
	providertest.Run(t, func(t *testing.T) cove.Provider { return alone{openWith(t, local.Config{Templates: s}), "tree"} }, "isolation", "warm", "terminal")
}

// TestTemplatesUser is the same as an ordinary user.
func TestTemplatesUser(t *testing.T) {
	tier.Full(t, "TestTemplates runs as root; TestLifeUser runs sandboxes as an ordinary user")
	linuxtest.Again(t, "^(TestTemplates|TestTemplateTree|TestTemplateFiles|TestTemplatesAreFound|TestTemplateThatChanges|TestEscapesTemplates)$")
}

// alone is a provider that has one template.
type alone struct {
	cove.Provider

	template string
}

func (p alone) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := p.Provider.Probe(ctx)
	caps.Templates = []string{p.template}
	return caps, err
}

func (p alone) Unwrap() cove.Provider { return p.Provider }

// TestTemplateFiles is about what sandboxes see of each kind.
func TestTemplateFiles(t *testing.T) {
	p := openWith(t, local.Config{Templates: templates(t)})
	defer func() { must(t, p.Close()) }()
	for name, cases := range map[string]map[string]string{
		"python": {
			`echo $FLAVOR $PATH`:         "python /opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
			`command -v layered || true`: "",
		},
		"layer": {
			`layered; run`:                      "from the layer\na tool\n",
			`cat /usr/share/cove/word`:          "shared\n",
			`cat /usr/lib/os-release`:           "ID=layered\n",
			`cat /etc/layered.conf`:             "conf\n",
			`cat /etc/link`:                     "conf\n",
			`cat /etc/ssl/own.cnf`:              "ssl\n",
			`cat /etc/services`:                 "cove 1/tcp\n",
			`cat /var/lib/own/word`:             "state\n",
			`/etc/alternatives/own`:             "from the layer\n",
			`grep -c layer /etc/passwd || true`: "0\n",
			`ls /tmp /workspace`:                "/tmp:\n\n/workspace:\n",
			`test -x /usr/bin/env; echo $?`:     "0\n", // of the host
			`echo $FLAVOR`:                      "layer\n",
		},
		"tree": {
			`cat /etc/os-release /var/lib/word`:              "ID=tree\nof the tree\n",
			`run`:                                            "a tool of the tree\n",
			`grep -c tree /etc/passwd || true`:               "0\n",
			`grep -c sandbox /etc/passwd`:                    "1\n",
			`cat /etc/resolv.conf | head -n 1`:               "nameserver 198.18.0.1\n",
			`ls -A /tmp /workspace`:                          "/tmp:\n\n/workspace:\n",
			`ls /usr/bin | wc -l | tr -d ' '`:                strconv.Itoa(len(treePrograms)) + "\n",
			`echo $FLAVOR $PATH`:                             "tree /opt/tool:/usr/bin\n",
			`echo x > /var/tmp/x && cat /tmp/x && rm /tmp/x`: "x\n",
			`test -c /dev/null && id -u`:                     "1000\n",
			`test -e /usr/bin/apt; echo $?`:                  "1\n", // nothing of the host
			`test -e /proc/self/status && echo ok`:           "ok\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			box, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Template: name})
			must(t, err)
			for script, want := range cases {
				if got := sh(t, box, script); got != want {
					t.Errorf("%s prints %q; want %q", script, got, want)
				}
			}
			must(t, box.Destroy(t.Context()))
		})
	}
}

// TestTemplatesAreFound is about names and what is behind them.
func TestTemplatesAreFound(t *testing.T) {
	s := templates(t)
	p := openWith(t, local.Config{Templates: s})
	defer func() { must(t, p.Close()) }()
	caps, err := p.Probe(t.Context())
	must(t, err)
	if want := []string{local.Base, "layer", "python", "tree"}; !slices.Equal(caps.Templates, want) {
		t.Errorf("the templates are %q; want %q", caps.Templates, want)
	}
	if !slices.Contains(caps.Notes, s.Lacking()[0]) {
		t.Errorf("nothing says what is not ready: %q", caps.Notes)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Template: "data"})
	if wants(t, cove.Invalid, err, "a template that was not built"); !strings.Contains(cove.RemedyOf(err), "cove template build data") {
		t.Errorf("the remedy is %q", cove.RemedyOf(err))
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	crowd := t.TempDir()
	for i := range 200 {
		must(t, os.Mkdir(filepath.Join(crowd, "d"+strconv.Itoa(i)), 0o755))
	}
	for name, broken := range map[string]local.Template{
		"no kind":        {},
		"no tree":        {Kind: local.KindTree},
		"relative":       {Kind: local.KindLayer, Tree: "tree"},
		"gone":           {Kind: local.KindTree, Tree: "/no/such/tree"},
		"gone layer":     {Kind: local.KindLayer, Tree: "/no/such/tree"},
		"file":           {Kind: local.KindTree, Tree: file},
		"crowd":          {Kind: local.KindTree, Tree: crowd},
		"crowded layer":  {Kind: local.KindLayer, Tree: crowd},
		"layer of links": {Kind: local.KindLayer, Tree: tree(t, map[string]string{"usr": "->/etc"})},
		"over a link":    {Kind: local.KindLayer, Tree: tree(t, map[string]string{"bin/x": "x"})},
		"bad variable":   {Kind: local.KindHost, Env: map[string]string{"A=B": "c"}},
		"NUL":            {Kind: local.KindHost, Env: map[string]string{"A": "c\x00"}},
		"bad path":       {Kind: local.KindHost, Path: []string{"bin"}},
		"many variables": {Kind: local.KindHost, Path: make([]string, 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			broken.Name, broken.Digest = "broken", name
			s.put(broken)
			_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Template: "broken"})
			if wants(t, cove.Unavailable, err, "a template that is broken"); cove.RemedyOf(err) == "" {
				t.Errorf("%v has no remedy", err)
			}
		})
	}
	for text, want := range map[string]string{"/usr: create overlay: invalid argument": "template \"layer\"", "clone": "provider local"} {
		if err := local.ExplainTemplate(p, "layer", errors.New(text)); cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), want) {
			t.Errorf("%s becomes %v", text, err)
		}
	}
	s.err = cove.Errorf(cove.Unavailable, "it was changed")
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Template: "layer"})
	wants(t, cove.Unavailable, err, "a template that its store refuses")
	_, err = p.Prepare(t.Context(), cove.Mold{Template: "layer", Workspace: cove.WorkspaceMemory})
	wants(t, cove.Unavailable, err, "a spare of it")
	box, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
	must(t, err) // the base needs no store
	must(t, box.Destroy(t.Context()))
}

// TestTemplateThatChanges: what was built anew is for new sandboxes; those that
// wait are not given away any more.
func TestTemplateThatChanges(t *testing.T) {
	s := templates(t)
	p := openWith(t, local.Config{Templates: s})
	defer func() { must(t, p.Close()) }()
	mold := cove.Mold{Template: "layer", Workspace: cove.WorkspaceMemory}
	spec := cove.Spec{Template: "layer"}
	old, err := p.Create(t.Context(), cove.NewID(), spec)
	must(t, err)
	spare, err := p.Prepare(t.Context(), mold)
	must(t, err)
	s.put(local.Template{Name: "layer", Digest: "new", Kind: local.KindLayer, Tree: tree(t, map[string]string{"usr/bin/layered": "#!/bin/sh\necho anew\n"})})
	claimed, err := spare.Claim(t.Context(), cove.NewID(), spec)
	must(t, err)
	for box, want := range map[cove.Sandbox]string{old: "from the layer\n", claimed: "anew\n"} {
		if got := sh(t, box, "layered"); got != want {
			t.Errorf("it prints %q; want %q", got, want)
		}
		must(t, box.Destroy(t.Context()))
	}
	local.RestKits(p)
	again, err := p.Create(t.Context(), cove.NewID(), spec)
	must(t, err)
	if got := sh(t, again, "layered"); got != "anew\n" {
		t.Errorf("after a rest it prints %q", got)
	}
}

// TestEscapesTemplates makes attacks from a layer and from a tree: they are no way
// out, and no way to one another.
func TestEscapesTemplates(t *testing.T) {
	p := openWith(t, local.Config{Templates: templates(t)})
	defer func() { must(t, p.Close()) }()
	var names []string
	for _, a := range escape.Battery() {
		// What is about time and amounts is the same in every root.
		slow := slices.ContainsFunc([]string{"egress_", "workspace_", "survivors_", "bomb", "memory_files", "hog", "busy", "ignored", "stopped", "flood", "race"}, func(word string) bool {
			return strings.Contains(a.Name, word)
		})
		if !slow {
			names = append(names, a.Name)
		}
	}
	for _, template := range []string{"layer", "tree"} {
		t.Run(template, func(t *testing.T) {
			if tried := withstand(t, alone{p, template}, escape.Options{Only: names, Via: []escape.Via{escape.Exec}}); tried < 40 {
				t.Errorf("only %d attacks were made", tried)
			}
		})
	}
}
