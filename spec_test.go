package cove_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
)

func many[K comparable](n int, key func(int) K) map[K]string {
	m := map[K]string{}
	for i := range n {
		m[key(i)] = "v"
	}
	return m
}

func TestSpecValidate(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		spec  cove.Spec
		field string // "" means valid
	}{
		"empty":             {cove.Spec{}, ""},
		"whole":             {wholeSpec(), ""},
		"long name":         {cove.Spec{User: long}, "user_id"},
		"NUL":               {cove.Spec{Template: "a\x00b"}, "template"},
		"not UTF-8":         {cove.Spec{Project: "\xff"}, "project_name"},
		"bad snapshot":      {cove.Spec{Snapshot: "../x"}, "snapshot"},
		"bad isolation":     {cove.Spec{Require: cove.Require{Isolation: "strong"}}, "require.isolation"},
		"bad workspace":     {cove.Spec{Workspace: cove.Workspace{Kind: "tape"}}, "workspace.kind"},
		"bad end":           {cove.Spec{OnEnd: "vanish"}, "on_end"},
		"negative cpu":      {cove.Spec{Resources: cove.Resources{CPUs: -1}}, "cpu_limit"},
		"tiny memory":       {cove.Spec{Resources: cove.Resources{Memory: 5}}, "memory_limit"},
		"negative pids":     {cove.Spec{Resources: cove.Resources{PIDs: -1}}, "pids_limit"},
		"negative idle":     {cove.Spec{Idle: -time.Minute}, "timeout_minutes"},
		"negative lifetime": {cove.Spec{Lifetime: -1}, "lifetime_minutes"},
		"negative size":     {cove.Spec{Workspace: cove.Workspace{Size: -1}}, "workspace.size_mb"},
		"negative files":    {cove.Spec{Workspace: cove.Workspace{Files: -1}}, "workspace.files"},
		"port 0":            {cove.Spec{Ports: []int{0}}, "ports"},
		"port 65536":        {cove.Spec{Ports: []int{65536}}, "ports"},
		"many ports":        {cove.Spec{Ports: slices.Repeat([]int{1}, 300)}, "ports"},
		"bad mode":          {cove.Spec{Network: cove.Network{Mode: "all"}}, "network.mode"},
		"allow nothing":     {cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow}}, "network.allow"},
		"allow with none":   {cove.Spec{Network: cove.Network{Mode: cove.NetworkNone, Allow: []string{"a.com"}}}, "network.allow"},
		"bad host":          {cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"http://a.com"}}}, "network.allow"},
		"star in host":      {cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"a.*.com"}}}, "network.allow"},
		"relative volume":   {cove.Spec{Volumes: []cove.Volume{{Source: "data", Target: "/data"}}}, "volumes"},
		"dotted volume":     {cove.Spec{Volumes: []cove.Volume{{Source: "/a/../b", Target: "/data"}}}, "volumes"},
		"volume at root":    {cove.Spec{Volumes: []cove.Volume{{Source: "/a", Target: "/"}}}, "volumes"},
		"volume over /etc":  {cove.Spec{Volumes: []cove.Volume{{Source: "/a", Target: "/etc/x"}}}, "volumes"},
		"volume in work":    {cove.Spec{Volumes: []cove.Volume{{Source: "/a", Target: "/workspace/x"}}}, "volumes"},
		"volume in home":    {cove.Spec{Volumes: []cove.Volume{{Source: "/a", Target: "/home/user"}}}, "volumes"},
		"NUL in volume":     {cove.Spec{Volumes: []cove.Volume{{Source: "/a\x00", Target: "/d"}}}, "volumes"},
		"source and name":   {cove.Spec{Volumes: []cove.Volume{{Source: "/a", Name: "a", Target: "/d"}}}, "volumes"},
		"no source or name": {cove.Spec{Volumes: []cove.Volume{{Target: "/d"}}}, "volumes"},
		"name like a path":  {cove.Spec{Volumes: []cove.Volume{{Name: "../a", Target: "/d"}}}, "volumes"},
		"name like a flag":  {cove.Spec{Volumes: []cove.Volume{{Name: "-a", Target: "/d"}}}, "volumes"},
		"name like an id":   {cove.Spec{Volumes: []cove.Volume{{Name: "01jcw8xg9s7w4k5t3m2n1p0q6r", Target: "/d"}}}, "volumes"},
		"long volume name":  {cove.Spec{Volumes: []cove.Volume{{Name: strings.Repeat("a", 65), Target: "/d"}}}, "volumes"},
		"name, bad target":  {cove.Spec{Volumes: []cove.Volume{{Name: "a", Target: "/etc"}}}, "volumes"},
		"target twice":      {cove.Spec{Volumes: []cove.Volume{{Source: "/a", Target: "/d"}, {Source: "/b", Target: "/d"}}}, "volumes"},
		"env names":         {cove.Spec{EnvNames: []string{"A"}}, "env_names"},
		"bad env":           {cove.Spec{Env: map[string]string{"A B": "x"}}, "env"},
		"empty env name":    {cove.Spec{Env: map[string]string{"": "x"}}, "env"},
		"NUL in env":        {cove.Spec{Env: map[string]string{"A": "\x00"}}, "env.A"},
		"many env":          {cove.Spec{Env: many(300, func(i int) string { return "A" + strings.Repeat("b", i) })}, "env"},
		"bad metadata":      {cove.Spec{Metadata: map[string]string{"a=b": "x"}}, "metadata"},
		"too much in all":   {cove.Spec{Metadata: maps.Collect(bigEntries())}, "env"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.spec.Validate()
			if tt.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e, ok := errors.AsType[*cove.Error](err)
			if !ok || e.Code != cove.Invalid || e.Details["field"] != tt.field || !strings.HasPrefix(e.Message, tt.field+":") {
				t.Errorf("got %v, want invalid %s", err, tt.field)
			}
		})
	}
}

func bigEntries() func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			if !yield(k, strings.Repeat("x", 30<<10)) {
				return
			}
		}
	}
}

func wholeSpec() cove.Spec {
	return cove.Spec{
		Provider: "local", Template: "python", Flavor: "large", Project: "p", User: "u", Thread: "t",
		Resources: cove.Resources{CPUs: 0.5, Memory: cove.GiB, PIDs: 10},
		Network:   cove.Network{Mode: cove.NetworkAllow, Allow: []string{"pypi.org", "*.github.com:443"}},
		Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: cove.GiB, Files: 10},
		Volumes:   []cove.Volume{{Source: "/data", Target: "/data"}},
		Env:       map[string]string{"A": "b"}, Policy: "agent-bash", Require: cove.Require{Isolation: cove.BoundaryMicroVM},
		Metadata: map[string]string{"k": "v"}, Ports: []int{80}, Snapshot: cove.NewID(),
		Idle: time.Minute, Lifetime: time.Hour, FixedEnd: true, OnEnd: cove.EndPause, Wake: true, PublicPorts: true,
	}
}

func TestAskedNamesWhatTheCallerSet(t *testing.T) {
	if got := (cove.Spec{}).Asked(); len(got) != 0 {
		t.Errorf("an empty spec asks for %v", got)
	}
	if got, want := wholeSpec().Asked(), cove.LimitNames(); !slices.Equal(got, want) {
		t.Errorf("a whole spec asks for %v, want %v", got, want)
	}
	if got := (cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}}).Asked(); len(got) != 0 {
		t.Errorf("an open network asks for %v", got)
	}
}

func TestDiffersComparesOnlyWhatIsAsked(t *testing.T) {
	have := wholeSpec()
	if got := have.Differs(cove.Spec{User: "other", Thread: "other"}); len(got) != 0 {
		t.Errorf("nothing asked, yet %v differ", got)
	}
	if got := have.Differs(have); len(got) != 0 {
		t.Errorf("a spec differs from itself in %v", got)
	}
	asked := cove.Spec{Flavor: "small", Resources: cove.Resources{CPUs: 2}, Env: map[string]string{"A": "c"}, Network: cove.Network{Mode: cove.NetworkOpen}}
	want := []string{"flavor", "resources.cpus", "network.mode", "env"}
	if diff := cmp.Diff(want, have.Differs(asked)); diff != "" {
		t.Error(diff)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	a := wholeSpec()
	b := a.Clone()
	b.Env["A"], b.Metadata["k"], b.Ports[0], b.Volumes[0].Write, b.Network.Allow[0] = "x", "x", 1, true, "x"
	if diff := cmp.Diff(wholeSpec(), a, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Snapshot" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

func TestCleanPathStaysInside(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt": "/workspace/a.txt", "/workspace/../workspace/b": "/workspace/b", "/tmp/x": "/tmp/x",
		"a/../../workspace/c": "/workspace/c", ".": "/workspace", "/home/sandbox/x": "/home/sandbox/x",
		"": "", "../etc/passwd": "", "/etc/passwd": "", "/workspace2": "", "a\x00b": "", "/": "", "/workspace/../etc": "",
		strings.Repeat("a", 5000): "",
	} {
		got, err := cove.CleanPath(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.40q gives %q, %v; want %q", name, got, err, want)
		}
		if err != nil && cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%.40q gives %v, want Invalid", name, err)
		}
	}
	if got, err := cove.CleanPath("/data/x", "/data"); err != nil || got != "/data/x" {
		t.Errorf("a file in a volume gives %q, %v", got, err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		got, err := cove.CleanPath(rapid.StringMatching(`[a./\\ ]{1,30}`).Draw(rt, "path"))
		if err == nil && !strings.HasPrefix(got+"/", "/workspace/") && !strings.HasPrefix(got+"/", "/tmp/") && !strings.HasPrefix(got+"/", "/home/") {
			rt.Fatalf("%q is outside", got)
		}
	})
}

func TestRequestsValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		field string
	}{
		"open":             {cove.OpenRequest{OnFull: cove.WaitWhenFull}.Validate(), ""},
		"on_full":          {cove.OpenRequest{OnFull: "later"}.Validate(), "on_full"},
		"long key":         {cove.OpenRequest{IdempotencyKey: strings.Repeat("k", 300)}.Validate(), "Idempotency-Key"},
		"bad spec":         {cove.OpenRequest{Spec: cove.Spec{Idle: -1}}.Validate(), "timeout_minutes"},
		"exec":             {cove.ExecRequest{Line: "true"}.Validate(), ""},
		"no command":       {cove.ExecRequest{}.Validate(), "command"},
		"two commands":     {cove.ExecRequest{Line: "a", Argv: []string{"a"}}.Validate(), "command"},
		"no name":          {cove.ExecRequest{Argv: []string{""}}.Validate(), "command"},
		"timeout":          {cove.ExecRequest{Line: "a", Limits: cove.Limits{Wall: -1}}.Validate(), "timeout"},
		"output":           {cove.ExecRequest{Line: "a", Limits: cove.Limits{Output: -1}}.Validate(), "max_output"},
		"tty":              {cove.ExecRequest{Line: "a", TTY: &cove.WindowSize{}}.Validate(), "tty"},
		"NUL":              {cove.ExecRequest{Argv: []string{"a", "\x00"}}.Validate(), "command"},
		"many args":        {cove.ExecRequest{Argv: make([]string, 40000)[1:]}.Validate(), "command"},
		"a line that fits": {cove.ExecRequest{Line: strings.Repeat("a", 2<<20)}.Validate(), ""},
		"long line":        {cove.ExecRequest{Line: strings.Repeat("a", 3<<20)}.Validate(), "command"},
		"env":              {cove.ExecRequest{Line: "a", Env: map[string]string{"=": ""}}.Validate(), "env"},
		"dir":              {cove.ExecRequest{Line: "a", Dir: "\x00"}.Validate(), "workdir"},
		"code":             {cove.CodeRequest{Language: "python"}.Validate(), ""},
		"no language":      {cove.CodeRequest{}.Validate(), "language"},
		"code timeout":     {cove.CodeRequest{Language: "x", Limits: cove.Limits{Wall: -1}}.Validate(), "timeout"},
		"long code":        {cove.CodeRequest{Language: "x", Code: strings.Repeat("a", 17<<20)}.Validate(), "code"},
		"key":              {cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeExec}, Tenant: "acme-1"}.Validate(), ""},
		"no scopes":        {cove.KeyRequest{}.Validate(), "scopes"},
		"bad scope":        {cove.KeyRequest{Scopes: []cove.Scope{"root"}}.Validate(), "scopes"},
		"bad tenant":       {cove.KeyRequest{Tenant: "a b", Scopes: []cove.Scope{"*"}}.Validate(), "tenant"},
		"long key name":    {cove.KeyRequest{Name: strings.Repeat("x", 300)}.Validate(), "name"},
		"negative limit":   {cove.KeyRequest{Scopes: []cove.Scope{"*"}, TTL: -1}.Validate(), "limits"},
		"key defaults":     {cove.KeyRequest{Scopes: []cove.Scope{"*"}, Defaults: cove.Spec{Idle: -1}}.Validate(), "timeout_minutes"},
		"bounds":           {cove.Bounds{Sessions: -1}.Validate(), "quota"},
		"run":              {run(nil), ""},
		"run type":         {run(func(r *cove.RunRequest) { r.Type = "r" }), "query_type"},
		"run sql":          {run(func(r *cove.RunRequest) { r.SQL = "" }), "sql"},
		"run python":       {run(func(r *cove.RunRequest) { r.Type = cove.QueryPython }), "python_code"},
		"run long":         {run(func(r *cove.RunRequest) { r.SQL = strings.Repeat("x", 2<<20) }), "sql"},
		"run timeout":      {run(func(r *cove.RunRequest) { r.Timeout = time.Hour }), "timeout_seconds"},
		"run rows":         {run(func(r *cove.RunRequest) { r.MaxRows = -1 }), "max_rows"},
		"run output":       {run(func(r *cove.RunRequest) { r.MaxOutput = 1024 }), "max_output_bytes"},
		"run files":        {run(func(r *cove.RunRequest) { r.Files = make([]cove.RunFile, 100) }), "files"},
		"run dataset":      {run(func(r *cove.RunRequest) { r.Dataset = "\xff" }), "dataset_id"},
	} {
		e, _ := errors.AsType[*cove.Error](tt.err)
		switch {
		case tt.field == "" && tt.err != nil:
			t.Errorf("%s: %v", name, tt.err)
		case tt.field != "" && (e == nil || e.Details["field"] != tt.field):
			t.Errorf("%s: got %v, want %s", name, tt.err, tt.field)
		}
	}
}

func run(change func(*cove.RunRequest)) error {
	r := cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"}
	if change != nil {
		change(&r)
	}
	return r.WithDefaults().Validate()
}

// TestAmountsNameTheirRange: who asks for too much, or too little, is told what
// would do, in the units of people.
func TestAmountsNameTheirRange(t *testing.T) {
	for want, spec := range map[string]cove.Spec{
		"memory_limit: 5 is out of range; use 4m to 64t":                    {Resources: cove.Resources{Memory: 5}},
		"cpu_limit: 2000 is out of range; use 0.01 to 1024":                 {Resources: cove.Resources{CPUs: 2000}},
		"timeout_minutes: 600ms is out of range; use 1s to 8784h0m0s":       {Idle: 600 * time.Millisecond},
		"lifetime_minutes: 10000h0m0s is out of range; use 1s to 8784h0m0s": {Lifetime: 10000 * time.Hour},
		"workspace.size_mb: 1 is out of range; use 64k to 64t":              {Workspace: cove.Workspace{Size: 1}},
	} {
		if got := cove.MessageOf(spec.Validate()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
