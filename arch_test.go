package cove_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// allowed says what each package may import from this module, tests aside. A
// package that is not listed may import nothing of it. Siblings do not import
// siblings; an arrow that is missing here is missing from ARCHITECTURE.md too.
// A line that ends in /* is for a folder and what is in it, if anything.
var allowed = map[string][]string{
	"": {},

	"engine":       {"", "internal/admission", "internal/hostpath", "internal/pool", "internal/spool", "internal/task"},
	"client":       {"", "internal/wire", "retry"},
	"agenttool":    {""},
	"retry":        {""},
	"inprocess":    {"", "internal/config", "internal/daemon", "provider/local", "retry"},
	"platformtest": {""},

	"provider/fake":          {""},
	"provider/alltest":       {"", "internal/testkit/program", "internal/testkit/tier", "provider/docker", "provider/gvisor", "provider/local", "provider/providertest"},
	"provider/all":           {"", "provider/docker", "provider/e2b", "provider/fake", "provider/gvisor", "provider/local", "provider/microsandbox"},
	"provider/local":         {"", "internal/egress", "internal/guest", "internal/guest/agent", "internal/keeper", "internal/linux/*", "internal/roster", "internal/template", "provider/local/fence"},
	"provider/gvisor":        {"", "internal/egress", "internal/guest", "internal/gvisorexe", "internal/linux/*", "internal/roster", "internal/template", "provider/gvisor/warden"},
	"provider/gvisor/warden": {""},
	"provider/docker":        {"", "internal/egress", "internal/guest", "internal/linux", "internal/linux/cgroup", "internal/roster"},
	"provider/microsandbox":  {"", "internal/guest", "internal/mailbox"},
	"provider/e2b":           {"", "internal/guest"},
	"provider/e2b/e2btest":   {""},
	"provider/local/fence":   {"internal/guest/protocol", "internal/linux/*"},
	"provider/providertest":  {"", "provider/providertest/escape"},

	"provider/providertest/escape":  {""},
	"provider/microsandbox/msbtest": {"", "internal/linux/*"},

	"store/memory":          {""},
	"store/redis":           {""},
	"store/redis/redistest": {"", "store/redis"},
	"store/sqlite":          {""},
	"store/storetest":       {""},

	"internal/admission":           {""},
	"internal/analyze":             {"", "internal/pypolicy/fact", "internal/talk"},
	"internal/archive":             {""},
	"internal/archive/archivetest": {""},
	"internal/artifact":            {""},
	"internal/audit":               {"", "internal/flock"},
	"internal/auth":                {""},
	"internal/bucket":              {""},
	"internal/bucket/s3test":       {},
	"internal/cluster":             {"", "client", "internal/placement", "internal/wire"},
	"internal/clustersim":          {"", "internal/placement"},
	"internal/config":              {""},
	"internal/console":             {},
	"internal/docstest":            {},
	"internal/egress":              {""},
	"internal/flock":               {},
	"internal/gvisorexe":           {"", "internal/packed"},
	"internal/hostpath":            {""},
	"internal/kernel":              {"", "internal/talk"},
	"internal/measure":             {""},
	"internal/noderecord":          {"", "internal/recordcopy"},
	"internal/packed":              {""},
	"internal/placement":           {""},
	"internal/policy":              {"", "internal/scope"},
	"internal/pool":                {""},
	"internal/preview":             {""},
	"internal/rootfs":              {"", "internal/flock"},
	"internal/recordcopy":          {""},
	"internal/recovery":            {"", "internal/recordcopy"},
	"internal/roster":              {""},
	"internal/scope":               {""},
	"internal/sdktest":             {},
	"internal/spool":               {""},
	"internal/talk":                {""},
	"internal/talk/talktest":       {""},
	"internal/task":                {""},
	"internal/telemetry":           {""},
	"internal/template":            {""},
	"internal/ticket":              {""},
	"internal/volume":              {""},
	"internal/intake":              {""},
	"internal/wire":                {"", "internal/intake"},

	// A cluster for the time of a test, and what its clients were told.
	"internal/clustertest":         {"internal/clustertest/history", "internal/testkit/program", "provider/providertest"},
	"internal/clustertest/history": {},
	"internal/upgradetest":         {},

	// For tests only.
	"internal/testkit/program": {},
	"internal/testkit/tier":    {},

	// What sandboxes have in them, and where that comes from.
	"internal/rootfs/debian":   {"", "internal/rootfs"},
	"internal/rootfs/image":    {"", "internal/rootfs"},
	"internal/rootfs/registry": {""},

	// Questions to data: the engine that answers SQL, what may be asked, who answers.
	"internal/duckdb":         {"", "internal/duckdb/ask", "internal/talk"},
	"internal/duckdb/ask":     {},
	"internal/duckexe":        {"", "internal/packed"},
	"internal/sqlpolicy":      {""},
	"internal/pypolicy":       {"", "internal/pypolicy/fact"},
	"internal/pypolicy/fact":  {""},
	"internal/dataset":        {""},
	"internal/dataset/sample": {},
	"internal/datarun":        {"", "internal/dataset", "internal/datarun/pyrun", "internal/duckdb", "internal/duckdb/ask", "internal/pypolicy", "internal/pypolicy/fact", "internal/sqlpolicy"},
	"internal/datarun/pyrun":  {"", "internal/duckdb/ask"},
	"internal/chat":           {""},
	"internal/chat/openai":    {"", "internal/chat"},
	"internal/chat/modeltest": {},
	"platformtest/dataruns":   {""},

	"docs":             {},
	"skills":           {},
	"internal/httpapi": {"", "agenttool", "docs", "internal/hostpath", "internal/intake", "internal/wire", "skills"},

	// The faces: what clients of other systems find.
	"internal/e2bapi":    {"", "internal/intake"},
	"internal/msbapi":    {"", "internal/intake"},
	"internal/mcpserver": {"", "agenttool", "internal/intake"},

	// The kernel's primitives: each package wraps one, none knows what for.
	"internal/linux/*":         {"internal/linux"},
	"internal/linux/linuxtest": {"internal/linux", "internal/testkit/program"},
	"internal/linux/forkexec":  {"internal/linux", "internal/linux/longcall", "internal/linux/vfork"},
	"internal/linux/initproc":  {"internal/linux", "internal/linux/vfork"},

	// The agent inside a sandbox, the protocol it speaks, and who drives it.
	"internal/guest":          {"", "internal/guest/protocol", "internal/linux", "internal/linux/solo"},
	"internal/guest/agent":    {"internal/guest/protocol", "internal/linux", "internal/linux/forkexec", "internal/linux/landlock", "internal/linux/longcall", "internal/linux/seccomp", "internal/linux/uncharged"},
	"internal/guest/protocol": {"internal/linux/longcall"},
	"internal/keeper":         {"", "internal/egress", "internal/flock", "internal/guest/protocol", "internal/spool"},

	// The way to an agent where programs can only be run and waited for.
	"internal/mailbox": {"internal/guest/agent", "internal/guest/protocol"},

	// daemon puts the parts together, cli is what people type.
	"internal/daemon": {
		"", "client", "engine", "provider/all", "provider/fake", "provider/providertest/escape", "store/memory", "store/redis", "store/sqlite",
		"internal/analyze", "internal/archive", "internal/artifact", "internal/audit", "internal/auth", "internal/bucket", "internal/cluster", "internal/config", "internal/console", "internal/hostpath", "internal/httpapi", "internal/intake", "internal/kernel", "internal/measure", "internal/policy", "internal/preview", "internal/recovery",
		"internal/chat", "internal/chat/openai", "internal/datarun", "internal/dataset", "internal/duckdb", "internal/duckexe", "internal/flock",
		"internal/rootfs", "internal/rootfs/*", "internal/scope",
		"internal/e2bapi", "internal/mcpserver", "internal/msbapi", "internal/noderecord",
		"internal/telemetry", "internal/ticket", "internal/volume", "internal/wire",
	},
	"internal/daemon/daemontest": {"", "client", "internal/chat/modeltest", "internal/config", "internal/daemon", "platformtest/dataruns", "provider/providertest"},
	"internal/cli":               {"", "agenttool", "client", "internal/config", "internal/daemon", "internal/dataset/sample", "internal/mcpserver", "internal/measure", "internal/policy", "internal/wire", "provider/providertest/escape"},

	// With the tag lean, cmd/cove also imports internal/config and internal/whole.
	"internal/whole": {},
	"cmd/cove":       {"internal/cli", "internal/config", "internal/whole", "provider/local", "provider/providertest/escape"},
	"cmd/cove-agent": {"internal/guest/agent", "internal/mailbox", "provider/local/fence"},
	"bench": {
		"", "client", "engine", "inprocess", "provider/docker", "provider/fake", "provider/gvisor", "provider/local", "store/sqlite",
		"internal/archive", "internal/audit", "internal/dataset/sample", "internal/duckdb/ask", "internal/guest", "internal/keeper", "internal/kernel", "internal/measure", "internal/policy", "internal/rootfs",
	},
	// Programs as others would write them: they see what others see.
	"examples/*":          {"", "agenttool", "client", "inprocess"},
	"sdk":                 {},
	"sdk/typescript":      {},
	"sdk/wiretest":        {"docs"},
	"web":                 {},
	"scripts/clustersim":  {"", "internal/clustersim"},
	"scripts/coverreport": {},
	"scripts/faultcheck":  {"internal/clustertest/history"},
	"scripts/matrix":      {"provider/providertest"},
	"scripts/mutate":      {},
	"scripts/testrun":     {"internal/testkit/tier"},
}

// importers says who may import what others wrote, tests aside. A heavy
// dependency has one importer, so that replacing it changes one package; more
// than one needs its reason here.
var importers = map[string]struct {
	packages []string
	why      string // there is more than one importer
}{
	"github.com/coder/websocket":    {packages: []string{"internal/httpapi"}},
	"github.com/containerd/errdefs": {packages: []string{"provider/docker"}},
	"github.com/goccy/go-yaml":      {packages: []string{"internal/config"}},
	"github.com/moby/moby/api":      {packages: []string{"provider/docker"}},
	"github.com/moby/moby/client":   {packages: []string{"provider/docker"}},
	"github.com/redis/go-redis/v9":  {packages: []string{"store/redis"}},
	"github.com/spf13/cobra":        {packages: []string{"internal/cli"}},
	"golang.org/x/net":              {packages: []string{"internal/egress"}},
	"golang.org/x/term":             {packages: []string{"internal/cli"}},
	"modernc.org/sqlite":            {packages: []string{"store/sqlite"}},
	"pgregory.net/rapid":            {packages: []string{"store/storetest"}},

	"github.com/google/go-containerregistry": {packages: []string{"internal/rootfs/registry"}},

	"github.com/google/jsonschema-go":        {packages: []string{"internal/mcpserver"}},
	"github.com/modelcontextprotocol/go-sdk": {packages: []string{"internal/mcpserver"}},

	"github.com/prometheus/client_golang": {packages: []string{"internal/telemetry"}},
	"go.opentelemetry.io/otel":            {packages: []string{"internal/telemetry"}},

	"github.com/google/go-cmp": {
		packages: []string{"platformtest", "platformtest/dataruns", "provider/providertest", "store/storetest"},
		why:      "a suite is a test in a package of its own",
	},
	"golang.org/x/sys": {
		packages: []string{"internal/cluster", "internal/daemon", "internal/guest", "internal/guest/agent", "internal/guest/protocol", "internal/keeper", "internal/linux", "internal/linux/*", "internal/mailbox", "internal/volume", "internal/whole", "provider/gvisor", "provider/local", "provider/local/fence", "provider/providertest/escape"},
		why:      "it is the kernel's own vocabulary, not something to replace",
	},
	"mvdan.cc/sh/v3": {
		packages: []string{"internal/policy", "provider/fake"},
		why:      "one reads a command to judge it, the other plays it: docs/decisions/002-two-importers-of-the-shell-parser.md",
	},
}

// source is one package as go list sees it.
type source struct {
	ImportPath     string
	Name           string
	Dir            string
	Module         struct{ Path, Dir string }
	Imports        []string
	GoFiles        []string
	CgoFiles       []string
	IgnoredGoFiles []string
	TestGoFiles    []string
	XTestGoFiles   []string
}

// rel is the folder of the package within the module; the root is "".
func (s source) rel() string {
	return strings.TrimPrefix(strings.TrimPrefix(s.ImportPath, s.Module.Path), "/")
}

var listOnce = sync.OnceValues(func() ([]source, error) {
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,Module,Imports,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...").Output()
	if err != nil {
		return nil, err
	}
	var all []source
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var s source
		if err := dec.Decode(&s); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
})

func sources(t *testing.T) []source {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package")
	}
	return all
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.rel()] = true
		may, listed := lookUp(s.rel())
		if !listed {
			t.Errorf("%s is not in the table of arch_test.go. Give the package a line there and in ARCHITECTURE.md that says what it may import.", s.ImportPath)
		}
		for _, imp := range s.Imports {
			dep, ours := strings.CutPrefix(imp+"/", s.Module.Path+"/")
			dep = strings.TrimSuffix(dep, "/")
			if ours && !slices.Contains(may, dep) && !slices.Contains(may, dep+"/*") && !slices.Contains(may, path.Dir(dep)+"/*") {
				t.Errorf("%q imports %q, which the table of arch_test.go does not allow. Take what you need as an interface of the root package; if the arrow belongs in the design, add it to the table and to ARCHITECTURE.md.", s.rel(), dep)
			}
		}
	}
	for rel := range allowed {
		if !seen[rel] && !strings.HasSuffix(rel, "/*") {
			t.Errorf("arch_test.go has a line for %q, which does not exist. Take the line out.", rel)
		}
	}
}

// lookUp finds the line of a package: its own, or that of a folder.
func lookUp(rel string) ([]string, bool) {
	for _, line := range []string{rel, rel + "/*", path.Dir(rel) + "/*"} {
		if may, ok := allowed[line]; ok {
			return may, true
		}
	}
	return nil, false
}

func TestThirdParty(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, imp := range s.Imports {
			if !thirdParty(s, imp) {
				continue
			}
			mod := moduleOf(imp)
			used[mod+" "+s.rel()] = true
			switch {
			case s.rel() == "":
				t.Errorf("the root package imports %s. It imports the standard library only.", imp)
			case mod == "":
				t.Errorf("%q imports %s, which has no line among the importers of arch_test.go. Check that the standard library cannot do it, then add the line.", s.rel(), imp)
			case !slices.Contains(importers[mod].packages, s.rel()) && !slices.Contains(importers[mod].packages, path.Dir(s.rel())+"/*"):
				t.Errorf("%q imports %s, which only %s may. Ask there for what you need, or add the package and the reason to arch_test.go.", s.rel(), imp, strings.Join(importers[mod].packages, ", "))
			}
		}
	}
	for mod, rule := range importers {
		if len(rule.packages) > 1 && rule.why == "" {
			t.Errorf("arch_test.go gives %s %d importers and no reason", mod, len(rule.packages))
		}
		for _, rel := range rule.packages {
			if !used[mod+" "+rel] && !strings.HasSuffix(rel, "/*") {
				t.Errorf("arch_test.go lets %q import %s, and it does not. Take it out.", rel, mod)
			}
		}
	}
}

// thirdParty reports whether neither we nor the Go authors wrote the package.
func thirdParty(s source, imp string) bool {
	host, _, _ := strings.Cut(imp, "/")
	return strings.Contains(host, ".") && imp != s.Module.Path && !strings.HasPrefix(imp, s.Module.Path+"/")
}

func moduleOf(imp string) string {
	for mod := range maps.Keys(importers) {
		if imp == mod || strings.HasPrefix(imp, mod+"/") {
			return mod
		}
	}
	return ""
}
