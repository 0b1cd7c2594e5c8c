package cove_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goldenMetrics are the names of metrics, each with its kind and labels.
func goldenMetrics(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(readFile(t, "internal/telemetry/testdata/metrics.txt")) {
		f := strings.Fields(line)
		all[f[0]] = []string{f[1], "le"}
		if len(f) > 2 {
			all[f[0]] = append(all[f[0]], strings.Split(f[2], ",")...)
		}
	}
	// Of the library, for every program.
	all["process_resident_memory_bytes"], all["process_open_fds"] = []string{"gauge"}, []string{"gauge"}
	return all
}

var (
	metricName  = regexp.MustCompile(`\b(?:cove|process|go)_[a-z_]+`)
	grouping    = regexp.MustCompile(`\bby \(([^)]*)\)`)
	selector    = regexp.MustCompile(`\{([^}]*)\}`)
	labelOfRule = regexp.MustCompile(`([a-z_]+)\s*[=!]~?"`)
)

// wrong says what is wrong with an expression of a dashboard, or "".
func wrong(known map[string][]string, expr string) string {
	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 {
		return "names no metric"
	}
	var labels []string
	for _, name := range names {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if short := strings.TrimSuffix(name, suffix); short != name && len(known[short]) > 0 && known[short][0] == "histogram" {
				base = short
			}
		}
		if known[base] == nil {
			return "uses " + name + ", which is not in the golden file"
		}
		if base == name && known[base][0] == "histogram" {
			return "uses the histogram " + name + " as if it were a number"
		}
		labels = append(labels, known[base][1:]...)
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(l)) {
				return "groups by " + l + ", which is no label of it"
			}
		}
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, l := range labelOfRule.FindAllStringSubmatch(m[1], -1) {
			if !slices.Contains(labels, l[1]) {
				return "selects by " + l[1] + ", which is no label of it"
			}
		}
	}
	return ""
}

// TestDashboard holds the dashboard against the golden file of metrics.
func TestDashboard(t *testing.T) {
	known := goldenMetrics(t)
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "deploy/grafana.json")), &board); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			shown.WriteString(target.Expr + "\n")
			if problem := wrong(known, target.Expr); problem != "" {
				t.Errorf("the panel %q %s: %s", p.Title, problem, target.Expr)
			}
		}
	}
	for name := range known {
		if name != "cove_cpus_reserved" && !strings.HasPrefix(name, "cove_task_") && !strings.Contains(shown.String(), name) {
			t.Errorf("no panel shows %s", name)
		}
	}
	for _, bad := range []string{"1", "cove_nothing_total", "cove_command_duration_seconds", "sum by (tenant) (cove_sessions)", `cove_sessions{user="x"}`} {
		if wrong(known, bad) == "" {
			t.Errorf("this test finds nothing wrong with %s", bad)
		}
	}
}

// TestMetricsAreDocumented wants every name in the page for operators.
func TestMetricsAreDocumented(t *testing.T) {
	page := readFile(t, "docs/operations.md")
	for name := range goldenMetrics(t) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
	}
	known := goldenMetrics(t)
	for _, name := range metricName.FindAllString(page, -1) {
		if known[name] == nil && strings.HasPrefix(name, "cove_") && !strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "_bucket") {
			t.Errorf("docs/operations.md speaks of %s, which is no metric", name)
		}
	}
}

// settings are the lines of a unit, by name; a name that comes again adds up.
func settings(unit string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(unit) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			all[name] = strings.TrimSpace(all[name] + " " + value)
		}
	}
	return all
}

// TestUnit holds the unit against what sandboxes need.
func TestUnit(t *testing.T) {
	got := settings(readFile(t, "deploy/cove.service"))
	for name, want := range map[string]string{
		"KillMode": "process", "OOMPolicy": "continue", "Delegate": "cpu memory pids", "DelegateSubgroup": "server",
		"RuntimeDirectoryPreserve": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "StateDirectoryMode": "0700",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{
		"RestrictNamespaces", "ProtectProc", "ProcSubset", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups", "ProtectHostname",
		"PrivateDevices", "PrivateUsers", "PrivateNetwork", "RestrictSUIDSGID", "MemoryDenyWriteExecute", "SystemCallFilter", "LockPersonality", "UMask",
	} {
		if got[name] != "" {
			t.Errorf("%s is set, and sandboxes cannot live with it: docs/operations.md", name)
		}
	}
}

// TestUnitVerifies asks systemd itself, where it is.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	out, err := exec.CommandContext(t.Context(), analyze, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.Replace(readFile(t, "deploy/cove.service"), "/usr/local/bin/cove serve", "/bin/true", 1)
	if f := strings.Fields(string(out)); len(f) > 1 {
		if v, err := strconv.Atoi(f[1]); err == nil && v < 254 {
			unit = strings.Replace(unit, "DelegateSubgroup=server\n", "", 1) // it does not know it yet
		}
	}
	name := filepath.Join(t.TempDir(), "cove.service")
	if err := os.WriteFile(name, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), analyze, "verify", name).CombinedOutput()
	if err != nil || len(strings.TrimSpace(string(said))) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
}

// TestCompose reads the compose file as YAML: the rights of the container are
// those of the unit, and what it mounts is there.
func TestCompose(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Build struct {
				Context    string
				Dockerfile string
			}
			Profiles    []string
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
			Volumes     []string
			Ports       []string
		}
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	server := file.Services["cove"]
	var caps []string
	for c := range strings.FieldsSeq(settings(readFile(t, "deploy/cove.service"))["CapabilityBoundingSet"]) {
		caps = append(caps, strings.TrimPrefix(c, "CAP_"))
	}
	if diff := cmp.Diff(caps, server.CapAdd); diff != "" || !slices.Equal(server.CapDrop, []string{"ALL"}) {
		t.Errorf("the container's capabilities are not the unit's (-unit +compose):\n%s", diff)
	}
	readFile(t, filepath.Join("deploy", server.Build.Context, server.Build.Dockerfile))
	for name, s := range file.Services {
		if (name == "cove") != (len(s.Profiles) == 0) {
			t.Errorf("%s has the profiles %q", name, s.Profiles)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is open to the network: %s", name, p)
			}
		}
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, "./") {
				readFile(t, filepath.Join("deploy", from))
			}
		}
	}
	for name, c := range file.Configs {
		var any map[string]any
		if err := yaml.Unmarshal([]byte(c.Content), &any); err != nil || len(any) == 0 {
			t.Errorf("the config %s: %v", name, err)
		}
	}
	var scraper struct {
		ScrapeConfigs []struct {
			MetricsPath   string `yaml:"metrics_path"`
			Authorization struct {
				CredentialsFile string `yaml:"credentials_file"`
			}
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/prometheus.yaml")), &scraper); err != nil {
		t.Fatal(err)
	}
	if s := scraper.ScrapeConfigs; len(s) != 1 || s[0].MetricsPath != "/metrics" || s[0].Authorization.CredentialsFile == "" {
		t.Errorf("Prometheus reads %+v", s)
	}
}

// TestBuildReplacesNoDevice: an output is replaced by a rename, which would take
// /dev/null away from a machine whose root builds to it.
func TestBuildReplacesNoDevice(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", pipe).CombinedOutput(); err != nil {
		t.Skipf("no pipe can be made: %v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "scripts/build.sh", pipe).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not a file") {
		t.Errorf("it was built to a pipe: %v: %s", err, out)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is %v (%v)", info, err)
	}
	if strings.Contains(readFile(t, "scripts/check.sh"), "build.sh /dev/") {
		t.Error("scripts/check.sh builds to a device")
	}
}
