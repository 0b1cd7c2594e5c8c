package daemon_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/internal/wire"
)

func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shellTree is a directory with a shell, what that needs, and a greeting.
func shellTree(t *testing.T) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	done(t, err)
	out, err := exec.CommandContext(t.Context(), "ldd", sh).Output()
	if err != nil {
		t.Skipf("what %s needs cannot be found out: %v", sh, err)
	}
	dir := t.TempDir()
	for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(out), -1), sh) {
		data, err := os.ReadFile(file)
		done(t, err)
		at := filepath.Join(dir, file)
		if file == sh {
			at = filepath.Join(dir, "bin/sh")
		}
		done(t, os.MkdirAll(filepath.Dir(at), 0o755))
		done(t, os.WriteFile(at, data, 0o755))
	}
	done(t, os.WriteFile(filepath.Join(dir, "greeting"), []byte("from the tree\n"), 0o644))
	return dir
}

// localSettings are those of a server whose sandboxes are real.
func localSettings(t *testing.T) config.Config {
	t.Helper()
	cfg := settings(t, "SANDBOX_PROVIDER", "local")
	needProvider(t, cfg, "local")
	return cfg
}

// TestTemplateOverHTTP: what was built beside a server is there for its sessions,
// and what a session has stays when the template goes or becomes another.
func TestTemplateOverHTTP(t *testing.T) {
	cfg := localSettings(t)
	tree := shellTree(t)
	r, _ := serve(t, cfg, daemon.Options{})
	key, err := os.ReadFile(r.KeyFile)
	done(t, err)
	p := dial(t, r.URL, strings.TrimSpace(string(key)))
	if _, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "mine"}}); !errors.Is(err, cove.Invalid) {
		t.Errorf("a template that is not there: %v", err)
	}
	built, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "mine", Dir: tree})
	done(t, err)
	if len(built.Notes) != 1 || !strings.Contains(built.Notes[0], "no bash") {
		t.Errorf("the notes are %q", built.Notes)
	}
	greeting := func(s *cove.Session) string {
		x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Argv: []string{"sh", "-c", `read line < /greeting; echo "$line"; [ -e /usr/bin/env ] && echo the host`}})
		done(t, err)
		return string(x.Stdout.Data)
	}
	old, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "mine", Thread: "1"}})
	done(t, err)
	if got := greeting(old); got != "from the tree\n" {
		t.Errorf("the sandbox says %q", got)
	}
	done(t, os.WriteFile(filepath.Join(tree, "greeting"), []byte("from another\n"), 0o644))
	_, err = daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "mine", Dir: tree})
	done(t, err)
	next, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "mine", Thread: "2"}})
	done(t, err)
	if got := greeting(next); got != "from another\n" {
		t.Errorf("the second sandbox says %q", got)
	}
	kept, err := daemon.RemoveTemplate(t.Context(), cfg, "mine")
	done(t, err)
	if a, b := greeting(old), greeting(next); !kept || a != "from the tree\n" || b != "from another\n" {
		t.Errorf("kept is %v; they say %q and %q", kept, a, b)
	}
	for _, s := range []*cove.Session{old, next} {
		_, err := p.Sessions().Close(t.Context(), s.ID, false)
		done(t, err)
	}
}

// emptyImage is one for another machine, whose layer holds nothing.
func emptyImage(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{"manifest.json": `[{"Config":"c.json","Layers":["l.tar"]}]`, "c.json": `{"architecture":"m68k","os":"linux"}`, "l.tar": ""} {
		done(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		done(t, err)
	}
	done(t, w.Close())
	file := filepath.Join(t.TempDir(), "image.tar")
	done(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file
}

func TestTemplateBuildRefused(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("PATH", t.TempDir()) // neither apt nor docker
	cfg := settings(t)
	file := filepath.Join(t.TempDir(), "Dockerfile")
	done(t, os.WriteFile(file, []byte("FROM scratch\n"), 0o600))
	for name, c := range map[string]struct {
		build daemon.TemplateBuild
		code  cove.Code
	}{
		"no name":        {daemon.TemplateBuild{Name: "A B", Dir: "/usr"}, cove.Invalid},
		"base":           {daemon.TemplateBuild{Name: "base", Dir: "/usr"}, cove.Invalid},
		"nothing":        {daemon.TemplateBuild{Name: "x"}, cove.Invalid},
		"two things":     {daemon.TemplateBuild{Name: "x", Dir: "/usr", Image: "x"}, cove.Invalid},
		"no directory":   {daemon.TemplateBuild{Name: "x", Dir: "/nowhere"}, cove.Unavailable},
		"no image":       {daemon.TemplateBuild{Name: "x", Image: "/nowhere"}, cove.NotFound},
		"other machine":  {daemon.TemplateBuild{Name: "x", Image: emptyImage(t)}, cove.Invalid},
		"no Dockerfile":  {daemon.TemplateBuild{Name: "x", Dockerfile: "/nowhere"}, cove.NotFound},
		"no Docker":      {daemon.TemplateBuild{Name: "x", Dockerfile: file}, cove.Unsupported},
		"no apt":         {daemon.TemplateBuild{Name: "x", Packages: []string{"hello", "./x.deb"}}, cove.Unsupported},
		"no registry":    {daemon.TemplateBuild{Name: "x", Registry: "127.0.0.1:1/x:1"}, cove.Unavailable},
		"no reference":   {daemon.TemplateBuild{Name: "x", Registry: "No Name"}, cove.Invalid},
		"no such remove": {daemon.TemplateBuild{Name: "-"}, cove.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := daemon.BuildTemplate(t.Context(), cfg, c.build); !errors.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
	entries, _ := os.ReadDir(filepath.Join(cfg.Home, "templates", "staging"))
	if len(entries) != 0 {
		t.Errorf("staging has %v", entries)
	}
	if _, err := daemon.VerifyTemplate(t.Context(), cfg, "x"); !errors.Is(err, cove.NotFound) {
		t.Error(err)
	}
}

// What the host has is not built: the answer is what it is.
func TestTemplateOfTheHost(t *testing.T) {
	cfg := settings(t)
	list, err := daemon.ListTemplates(cfg)
	done(t, err)
	for _, e := range list {
		if !e.Ready || e.Name == "base" || e.Kind != "host" {
			continue
		}
		got, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: e.Name})
		if err != nil || got.Kind != "host" || got.Digest != "" {
			t.Errorf("%s became %+v, %v", e.Name, got, err)
		}
	}
}

// A keeper that lives may hold sandboxes: what was used before stays.
func TestTemplatesOfAKeeper(t *testing.T) {
	cfg := settings(t)
	dir := t.TempDir()
	done(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o644))
	built, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "x", Dir: dir})
	done(t, err)
	use := filepath.Join(cfg.Home, "templates/trees", built.Digest+".use")
	done(t, os.WriteFile(use, nil, 0o600))
	lock := filepath.Join(cfg.Home, "providers/local/keeper.lock")
	done(t, os.MkdirAll(filepath.Dir(lock), 0o700))
	f, err := os.Create(lock)
	done(t, err)
	defer func() { _ = f.Close() }()
	done(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	if kept, err := daemon.RemoveTemplate(t.Context(), cfg, "x"); err != nil || !kept {
		t.Errorf("kept is %v, %v", kept, err)
	}
	done(t, f.Close())
	_, err = daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "y", Dir: t.TempDir()})
	done(t, err)
	if _, err := os.Stat(filepath.Join(cfg.Home, "templates/trees", built.Digest)); !os.IsNotExist(err) {
		t.Errorf("its files are still there: %v", err)
	}
}

// TestLayerIsCompiled: modules of a layer come compiled, and by nobody but a sandbox.
func TestLayerIsCompiled(t *testing.T) {
	cfg := localSettings(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("this host has no dpkg-deb")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control": "Package: cove-module\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: x\n",
		"usr/lib/python3/dist-packages/cove_module.py": "answer = 42\n",
		"usr/lib/python3/dist-packages/cove_wrong.py":  "def (:\n",
	} {
		done(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		done(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	done(t, os.Chmod(dir, 0o755))
	file := filepath.Join(t.TempDir(), "cove-module.deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "--build", dir, file).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	var steps []string
	built, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "m", Packages: []string{file}, Tell: func(p daemon.TemplateProgress) { steps = append(steps, p.Step) }})
	if errors.Is(err, cove.Unsupported) {
		t.Skip(err)
	}
	done(t, err)
	if len(built.Notes) != 0 || len(built.Packages) != 1 || built.Packages[0] != (wire.TemplatePackage{Name: "cove-module", Version: "1"}) || built.Kind != string(rootfs.KindLayer) {
		t.Errorf("got %+v", built)
	}
	found, err := filepath.Glob(filepath.Join(cfg.Home, "templates/trees", built.Digest, "usr/lib/python3/dist-packages/__pycache__/*.pyc"))
	done(t, err)
	if len(found) != 1 || !strings.HasPrefix(filepath.Base(found[0]), "cove_module.cpython-3") || !strings.Contains(strings.Join(steps, " "), "compile check") {
		t.Errorf("compiled %v in the steps %v", found, steps)
	}
}

// without is dpkg's list without a package and all that need it.
func without(status, name string) string {
	list := strings.Split(status, "\n\n")
	gone := []string{name}
	for i := 0; i < len(gone); i++ {
		itself := regexp.MustCompile(`^\n?Package: ` + regexp.QuoteMeta(gone[i]) + `\n`)
		needs := regexp.MustCompile(`\n(?:Pre-)?Depends: (?:.*, )?` + regexp.QuoteMeta(gone[i]) + `(?:[ ,:].*)?\n`)
		list = slices.DeleteFunc(list, func(paragraph string) bool {
			if needs.MatchString(paragraph + "\n") {
				first, _, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
				gone = append(gone, strings.TrimPrefix(first, "Package: "))
				return true
			}
			return itself.MatchString(paragraph)
		})
	}
	return strings.Join(list, "\n\n")
}

// TestDataLayer builds the template data as a layer, as it is on a host that has
// nothing of it.
func TestDataLayer(t *testing.T) {
	tier.Full(t, "it fetches and compiles for minutes; internal/rootfs/debian builds layers of small packages")
	cfg := localSettings(t)
	status, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		t.Skip("this host has no list of packages")
	}
	wanted, _ := rootfs.Packages("data")
	var names []string
	for _, w := range wanted {
		names = append(names, w.Name)
	}
	dir := t.TempDir()
	done(t, os.WriteFile(filepath.Join(dir, "status"), []byte(without(string(status), "python3-numpy")), 0o644))
	done(t, os.WriteFile(filepath.Join(dir, "apt.conf"), []byte(`Dir::State::status "`+dir+`/status";`), 0o644))
	t.Setenv("APT_CONFIG", filepath.Join(dir, "apt.conf"))
	built, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "frames", Packages: names})
	if errors.Is(err, cove.Unavailable) || errors.Is(err, cove.Invalid) {
		t.Skipf("the archive of packages cannot be used: %v", err)
	}
	done(t, err)
	if len(built.Packages) < 3 {
		t.Errorf("it has %v", built.Packages)
	}
	p, err := daemon.OneShot(t.Context(), cfg, cove.Spec{Template: "frames"}, false)
	done(t, err)
	defer func() { done(t, p.Close(t.Context())) }()
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Template: "frames"}})
	done(t, err)
	x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Argv: []string{"python3", "-c", "import pandas, matplotlib.pyplot; print(pandas.DataFrame({'x': [1, 2]}).x.sum(), pandas.__cached__)"}})
	done(t, err)
	if got := string(x.Stdout.Data); !strings.HasPrefix(got, "3 /usr/lib/python3/dist-packages/pandas/__pycache__/") {
		t.Errorf("it says %q, %s", got, x.Stderr.Data)
	}
}

// One template that cannot be used takes no other away, and the doctor says what
// to do about it.
func TestTemplateThatIsDamaged(t *testing.T) {
	cfg := localSettings(t)
	_, err := daemon.BuildTemplate(t.Context(), cfg, daemon.TemplateBuild{Name: "mine", Dir: shellTree(t)})
	done(t, err)
	done(t, os.WriteFile(filepath.Join(cfg.Home, "templates/names/mine.json"), []byte("{"), 0o600))
	reports, err := daemon.Doctor(t.Context(), cfg)
	done(t, err)
	i := slices.IndexFunc(reports, func(r cove.ProviderReport) bool { return r.Name == "local" })
	caps := reports[i].Capabilities
	told := slices.ContainsFunc(caps.Notes, func(note string) bool {
		return strings.HasPrefix(note, "template mine is not ready: ") && strings.Contains(note, "cove template rm mine")
	})
	if !told || !slices.Contains(caps.Templates, "base") || slices.Contains(caps.Templates, "mine") {
		t.Errorf("templates %q, notes %q", caps.Templates, caps.Notes)
	}
	list, err := daemon.ListTemplates(cfg)
	done(t, err)
	if want := len(rootfs.Builtin()) + 1; len(list) != want {
		t.Errorf("%d templates are listed, want %d", len(list), want)
	}
}
