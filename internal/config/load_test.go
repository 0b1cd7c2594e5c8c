package config_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// machine is a host of known size.
type machine map[string]string

func (m machine) ReadFile(name string) ([]byte, error) {
	if text, ok := m[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (m machine) Hostname() (string, error) {
	if name, ok := m["hostname"]; ok {
		return name, nil
	}
	return "", errors.New("no name")
}

func tenGiB() machine {
	return machine{"/proc/meminfo": "MemTotal:       10485760 kB\nMemFree: 1 kB\n", "hostname": "box"}
}

// sources returns an environment with a COVE_HOME of its own and no file.
func sources(t *testing.T, env map[string]string) config.Sources {
	t.Helper()
	all := map[string]string{"COVE_HOME": t.TempDir()}
	maps.Copy(all, env)
	return config.Sources{
		Env:       func(name string) (string, bool) { v, ok := all[name]; return v, ok },
		Providers: []string{"local", "docker", "fake"},
		Host:      tenGiB(),
	}
}

// writeFile makes the settings file of a COVE_HOME.
func writeFile(t *testing.T, src config.Sources, text string) string {
	t.Helper()
	home, _ := src.Env("COVE_HOME")
	path := filepath.Join(home, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, src config.Sources) config.Config {
	t.Helper()
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsAreThoseOfTheManual(t *testing.T) {
	c := load(t, sources(t, nil))
	got := map[string]any{
		"provider": c.Provider, "mode": c.Client.Mode, "url": c.Client.SandboxURL, "timeout": c.Exec.Timeout,
		"output": c.Exec.MaxOutput, "store": c.Exec.StoreCode, "imports": c.Exec.DangerousImports,
		"idle": c.Session.IdleTimeout, "start": c.Session.StartTimeout, "flavor": c.Session.Flavor,
		"max": c.Session.Max, "memory": c.Session.MaxTotalMemory, "lru": c.Session.LRUEviction,
		"cleanup": c.Maintenance.Cleanup, "orphans": c.Maintenance.Orphans,
		"image": c.Docker.Image, "network": c.Docker.Network, "pool": c.Pool, "workspace": c.Workspace,
		"msb": c.Microsandbox, "addr": c.Server.Addr, "node": c.NodeID, "level": c.LogLevel,
	}
	want := map[string]any{
		"provider": "local", "mode": "local", "url": "http://localhost:8000", "timeout": 33 * time.Second,
		"output": 20 * cove.KiB, "store": "on_error", "imports": "",
		"idle": 30 * time.Minute, "start": 3 * time.Minute, "flavor": "small",
		"max": 0, "memory": 8 * cove.GiB, "lru": true,
		"cleanup": time.Minute, "orphans": 10 * time.Minute,
		"image": "cove-sandbox:latest", "network": false, "pool": config.Pool{Size: 4, Max: 100, Warm: "auto"},
		"workspace": config.Workspace{MaxFileSize: 100 * cove.MiB, Files: 100_000, Size: 500 * cove.MiB},
		"msb": config.Microsandbox{
			ServerURL: "http://127.0.0.1:5555", Namespace: "default", CPUs: 1, Memory: 512 * cove.MiB,
		},
		"addr": "127.0.0.1:8000", "node": "box", "level": "info",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"large", "medium", "small"}, c.Flavors.Names()); diff != "" {
		t.Error(diff)
	}
	if _, remote := c.Remote(); remote {
		t.Error("remote without being told")
	}
}

func TestEachSourceBeatsTheOneBefore(t *testing.T) {
	src := sources(t, nil)
	path := writeFile(t, src, "provider: docker\nserver:\n  addr: 127.0.0.1:1\nlog_level: warn\n")
	home, _ := src.Env("COVE_HOME")
	src.Env = func(name string) (string, bool) {
		v, ok := map[string]string{"COVE_HOME": home, "SANDBOX_TYPE": "fake", "COVE_ADDR": "127.0.0.1:2"}[name]
		return v, ok
	}
	src.Flags = map[string]string{"addr": "127.0.0.1:3"}
	c := load(t, src)
	if c.LogLevel != "warn" || c.Provider != "fake" || c.Server.Addr != "127.0.0.1:3" {
		t.Errorf("log_level %s, provider %s, addr %s", c.LogLevel, c.Provider, c.Server.Addr)
	}
	for name, want := range map[string]config.Origin{
		"COVE_LOG_LEVEL":   {Source: config.FromFile, Name: "log_level", Place: path + ":4"},
		"SANDBOX_PROVIDER": {Source: config.FromEnv, Name: "SANDBOX_TYPE"},
		"COVE_ADDR":        {Source: config.FromFlag, Name: "--addr"},
		"COVE_URL":         {Source: config.FromDefault},
	} {
		if diff := cmp.Diff(want, c.Origin(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnOrderMayBeginWithTheProvider(t *testing.T) {
	for _, name := range []string{"SANDBOX_PROVIDER", "SANDBOX_TYPE"} {
		c := load(t, sources(t, map[string]string{name: "docker", "SANDBOX_FALLBACK": "docker,local"}))
		if diff := cmp.Diff([]string{"docker", "local"}, append([]string{c.Provider}, c.Fallback...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEveryKindOfValueIsRead(t *testing.T) {
	c := load(t, sources(t, map[string]string{
		"MSB_SESSION_TIMEOUT": "45m", "SANDBOX_TIMEOUT_SEC": "0.5", "MSB_MAX_TOTAL_MEMORY_MB": "2g", "MSB_MEMORY_MB": "256",
		"DOCKER_MEMORY_LIMIT": "512m", "DOCKER_CPU_LIMIT": "8.7", "MSB_ENABLE_LRU_EVICTION": "no", "SANDBOX_FALLBACK": "docker, fake",
		"MSB_SHARED_VOLUME_PATH": `["/host/data:/sandbox/data","/in:/data/in:ro"]`, "COVE_VOLUMES": `["/srv","/out:rw"]`, "REDIS_HOST": "r", "POOL_SIZE": " 0 ",
		"SANDBOX_MODE": "remote", "SANDBOX_PROVIDER": "", "E2B_API_KEY": "k",
	}))
	got := []any{
		c.Session.IdleTimeout, c.Exec.Timeout, c.Session.MaxTotalMemory, c.Microsandbox.Memory, c.Docker.Memory, c.Docker.CPULimit,
		c.Session.LRUEviction, c.Fallback, c.Volumes, c.Redis.URL, c.Pool.Size, c.Provider, c.E2B.APIKey.Reveal(),
	}
	want := []any{
		45 * time.Minute, 500 * time.Millisecond, 2 * cove.GiB, 256 * cove.MiB, 512 * cove.MiB, 8.7,
		false,
		[]string{"docker", "fake"},
		config.Volumes{Allowed: []string{"/srv", "/out:rw"}, Shared: []cove.Volume{
			{Source: "/host/data", Target: "/sandbox/data", Write: true}, {Source: "/in", Target: "/data/in"},
		}, Size: cove.GiB, Files: 100_000, Most: 100},
		"redis://r:6379", 0, "local", "k",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if u, remote := c.Remote(); !remote || u != "http://localhost:8000" {
		t.Errorf("remote: %q %v", u, remote)
	}
}

func TestFileHoldsListsFlavorsAndPolicies(t *testing.T) {
	src := sources(t, nil)
	writeFile(t, src, `# a comment
fallback: [docker, fake]
volumes:
  allowed:
    - /srv/a,b
  shared: ["/a:/data/a", "/b:/data/b:ro"]
session:
  flavor: tiny
server:
flavors:
  tiny: {cpus: 0.5, memory: 256, pids: 64}
  small: {cpus: 2, memory: 1g}
policies:
  readers: {allow: [cat, grep], deny: [rm]}
docker:
  image: |
    mine
`)
	c := load(t, src)
	if diff := cmp.Diff(config.Flavors{
		"tiny": {CPUs: 0.5, Memory: 256 * cove.MiB, PIDs: 64}, "small": {CPUs: 2, Memory: cove.GiB},
		"medium": {CPUs: 2, Memory: 2 * cove.GiB, PIDs: 512}, "large": {CPUs: 4, Memory: 4 * cove.GiB, PIDs: 1024},
	}, c.Flavors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Policies{"readers": {Allow: []string{"cat", "grep"}, Deny: []string{"rm"}}}, c.Policies); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Volumes{
		Allowed: []string{"/srv/a,b"},
		Shared:  []cove.Volume{{Source: "/a", Target: "/data/a", Write: true}, {Source: "/b", Target: "/data/b"}},
		Size:    cove.GiB, Files: 100_000, Most: 100,
	}, c.Volumes); diff != "" {
		t.Error(diff)
	}
	if c.Docker.Image != "mine" {
		t.Errorf("image %q", c.Docker.Image)
	}
}

func TestHomeDependsOnTheUser(t *testing.T) {
	for name, tc := range map[string]struct {
		root bool
		env  map[string]string
		want string
	}{
		"root":         {root: true, env: map[string]string{"HOME": "/root", "XDG_STATE_HOME": "/x"}, want: "/var/lib/cove"},
		"xdg":          {env: map[string]string{"HOME": "/home/u", "XDG_STATE_HOME": "/x"}, want: "/x/cove"},
		"relative xdg": {env: map[string]string{"HOME": "/home/u", "XDG_STATE_HOME": "x"}, want: "/home/u/.local/state/cove"},
		"home":         {env: map[string]string{"HOME": "/home/u"}, want: "/home/u/.local/state/cove"},
		"set":          {env: map[string]string{"COVE_HOME": "/c/../d"}, want: "/d"},
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, config.Sources{Root: tc.root, Env: func(n string) (string, bool) { v, ok := tc.env[n]; return v, ok }, Host: tenGiB()})
			if c.Home != tc.want || c.File != filepath.Join(tc.want, "config.yaml") {
				t.Errorf("home %s, file %s", c.Home, c.File)
			}
		})
	}
	if _, err := config.Load(config.Sources{}); cove.CodeOf(err) != cove.Invalid || !strings.HasPrefix(cove.MessageOf(err), "COVE_HOME: ") {
		t.Errorf("without HOME: %v", err)
	}
}

// TestHomeIsAbsolute: wherever it is named, since servers are started elsewhere.
func TestHomeIsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mine.yaml", []byte("session:\n  flavor: medium\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flag, env := sources(t, nil), sources(t, map[string]string{"COVE_HOME": "kept/here", "COVE_CONFIG": "mine.yaml"})
	flag.Flags = map[string]string{"home": "kept/here", "config": "mine.yaml"}
	for name, src := range map[string]config.Sources{"flag": flag, "variable": env} {
		if c := load(t, src); c.Home != filepath.Join(here, "kept/here") || c.File != filepath.Join(here, "mine.yaml") || c.Session.Flavor != "medium" {
			t.Errorf("%s: home %s, file %s", name, c.Home, c.File)
		}
	}
}

func TestMemoryIsThatOfTheContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		host machine
		want cove.Bytes
	}{
		"v2":        {machine{"/proc/meminfo": "MemTotal: 10485760 kB\n", "/sys/fs/cgroup/memory.max": "1073741824\n"}, 819 * cove.MiB},
		"v2 max":    {machine{"/proc/meminfo": "MemTotal: 10485760 kB\n", "/sys/fs/cgroup/memory.max": "max\n"}, 8 * cove.GiB},
		"v1":        {machine{"/proc/meminfo": "MemTotal: 10485760 kB\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 8 * cove.GiB},
		"unknown":   {machine{}, 0},
		"no number": {machine{"/proc/meminfo": "MemTotal: x kB\n"}, 0},
		"no line":   {machine{"/proc/meminfo": "MemFree: 1 kB\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			src := sources(t, nil)
			src.Host = tc.host
			c := load(t, src)
			if c.Session.MaxTotalMemory != tc.want || c.NodeID != "localhost" {
				t.Errorf("memory %s, node %s", c.Session.MaxTotalMemory, c.NodeID)
			}
		})
	}
}

// TestDefaultsFitTheMachine: as many sessions of the default flavor as are let in have
// no more memory than the control group around them, and that one less than the machine.
func TestDefaultsFitTheMachine(t *testing.T) {
	for total, want := range map[string]cove.Bytes{ // in kB
		"1048576":  921 * cove.MiB,
		"10485760": 9 * cove.GiB,
		"24683594": 21694 * cove.MiB, // 25.3 GB
	} {
		src := sources(t, nil)
		src.Host = machine{"/proc/meminfo": "MemTotal: " + total + " kB\n"}
		c := load(t, src)
		kb, err := strconv.ParseInt(total, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		flavor := c.Flavors[c.Session.Flavor].Memory
		sessions := c.Session.MaxTotalMemory / flavor
		if got := c.SandboxMemory(); got != want || sessions*flavor > got || got > cove.Bytes(kb)*cove.KiB/10*9 {
			t.Errorf("on a machine of %s kB %d sessions of %s are let in, and all sandboxes have %s; want %s", total, sessions, flavor, got, want)
		}
	}
	src := sources(t, map[string]string{"MSB_MAX_TOTAL_MEMORY_MB": "1024"})
	src.Host = machine{"/proc/meminfo": "MemTotal: 10485760 kB\n"}
	if got := load(t, src).SandboxMemory(); got != 1152*cove.MiB {
		t.Errorf("with 1024 MB for sessions, all sandboxes have %s", got)
	}
	src = sources(t, map[string]string{"MSB_MAX_TOTAL_MEMORY_MB": "67108864"}) // more than there is
	src.Host = machine{"/proc/meminfo": "MemTotal: 10485760 kB\n"}
	if got := load(t, src).SandboxMemory(); got != 9*cove.GiB {
		t.Errorf("where sessions may have more than the machine, all sandboxes have %s", got)
	}
}

func TestThisMachineHasMemoryAndAName(t *testing.T) {
	src := sources(t, nil)
	src.Host = nil
	if c := load(t, src); c.Session.MaxTotalMemory < 16*cove.MiB || c.NodeID == "" {
		t.Errorf("memory %s, node %q", c.Session.MaxTotalMemory, c.NodeID)
	}
	t.Setenv("COVE_LOG_LEVEL", "warn")
	if v, ok := config.Environment("COVE_LOG_LEVEL"); v != "warn" || !ok {
		t.Errorf("environment gave %q, %v", v, ok)
	}
}

func TestPolicyFile(t *testing.T) {
	src := sources(t, nil)
	path := filepath.Join(t.TempDir(), "ci.yaml")
	src.Flags = map[string]string{"policy": path}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("allow: [cat, grep]\nask: [cp]\ntimeout: 5\nmax_output: 2m\n")
	c := load(t, src)
	want := config.CommandPolicy{
		Allow: []string{"cat", "grep"}, Ask: []string{"cp"}, Limits: cove.Limits{Wall: 5 * time.Second, Output: 2 * cove.MiB},
	}
	if diff := cmp.Diff(want, c.Policies["ci"]); diff != "" || c.CommandPolicy != "ci" {
		t.Errorf("policy %s: %s", c.CommandPolicy, diff)
	}

	write("alow: [cat]\n")
	_, err := config.Load(src)
	checkRefused(t, err, path+`: ci.alow: is not a setting; use allow, deny, ask, helpers, network, timeout and max_output (line 1)`)
	write("allow: [[cat]]\n")
	_, err = config.Load(src)
	checkRefused(t, err, path+`: ci.allow: has a list in its list; write plain words (line 1)`)

	src.Flags = map[string]string{"policy": "./nowhere.yaml"}
	_, err = config.Load(src)
	checkRefused(t, err, `--policy: ./nowhere.yaml cannot be read (no such file or directory); name a file that can be read`)

	bad := filepath.Join(t.TempDir(), "Bad Name.yaml")
	if err := os.WriteFile(bad, []byte("allow: [cat]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src.Flags = map[string]string{"policy": bad}
	_, err = config.Load(src)
	checkRefused(t, err, `--policy: "Bad Name" cannot be the name of a policy; name the file with small letters, digits, - . and _`)
}
