package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// raced are the packages whose goroutines share state: they run with the race
// detector. A name that ends in /... includes the packages below it.
var raced = []string{
	"engine/...", "client", "retry", "store/...",
	"internal/admission", "internal/audit", "internal/auth", "internal/chat", "internal/cluster", "internal/duckdb",
	"internal/e2bapi", "internal/egress", "internal/guest/...", "internal/httpapi", "internal/intake", "internal/keeper", "internal/kernel",
	"internal/mcpserver", "internal/msbapi", "internal/pool", "internal/preview", "internal/roster", "internal/spool",
	"internal/task", "internal/telemetry",
}

// longest are started first, so that none of them runs alone at the end.
var longest = []string{
	"provider/local", "provider/docker", "provider/gvisor", "internal/daemon", "internal/sdktest", "cmd/cove", "internal/cli",
	"provider/microsandbox", "provider/e2b", "inprocess", "web", "sdk", "internal/docstest", "internal/upgradetest",
	"engine", "client", "internal/guest", "internal/cluster",
}

// alone are packages that run with no other beside them: their rules say by when a
// node must have been heard of.
var alone = []string{"internal/clustertest"}

// forking are packages with code that runs between vfork and exec. Counters of coverage
// there would call the race detector, which that process must not do.
var forking = []string{"internal/linux/...", "provider/providertest/escape"}

// uncovered are packages without coverage: their tests execute the test binary several
// hundred times, and each start of one with counters and the race detector takes half a
// second.
var uncovered = []string{"internal/guest"}

// duckdbModule is a module of its own, which is built with DuckDB's C++ libraries.
const duckdbModule = "cmd/cove-duckdb"

// command is one call of go test.
type command struct {
	dir      string // of the module, relative to the root
	env      []string
	flags    []string
	profile  []string // flags for the first run alone: a rerun would replace the profile
	packages []string // import paths
}

// args are those of the go command, for these packages.
func (c command) args(extra, packages []string) []string {
	return slices.Concat([]string{"test", "-json"}, c.flags, extra, packages)
}

// plan lists the calls that test the packages of patterns, each package once.
func (o options) plan(ctx context.Context, goFlags, patterns []string) ([]command, error) {
	packages, err := goList(ctx, patterns)
	if err != nil {
		return nil, err
	}
	fullPatterns := strings.FieldsFunc(o.full, func(r rune) bool { return r == ',' })
	if o.full != "" && len(fullPatterns) == 0 {
		return nil, fmt.Errorf("COVE_FULL is %q, and names no package", o.full)
	}
	full, err := fullPackages(ctx, fullPatterns, packages)
	if err != nil {
		return nil, err
	}
	detector := raceDetector(ctx)
	slices.SortStableFunc(packages, func(a, b string) int { return rank(a) - rank(b) })
	var commands []command
	for _, group := range []struct{ race, full, alone bool }{
		{}, {race: true}, {full: true}, {race: true, full: true}, {alone: true}, {full: true, alone: true},
	} {
		c := command{flags: o.flags(group.full, group.race && detector, goFlags)}
		c.packages = slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
			isAlone := matches(alone, p)
			return isAlone != group.alone || slices.Contains(full, p) != group.full || !isAlone && matches(raced, p) != group.race
		})
		if len(c.packages) > 0 {
			commands = append(commands, c)
		}
	}
	if o.cover != "" {
		if commands, err = o.addProfiles(ctx, commands); err != nil {
			return nil, err
		}
	}
	if o.duckdb {
		commands = append(commands, command{
			dir: duckdbModule, env: []string{"CGO_ENABLED=1", "GOFLAGS=-trimpath"},
			flags: o.flags(slices.Contains(fullPatterns, "./..."), false, goFlags), packages: []string{"./..."},
		})
	}
	return commands, nil
}

// fullPackages lists the packages of the patterns. Each pattern must have one that is
// tested.
func fullPackages(ctx context.Context, patterns, tested []string) ([]string, error) {
	var full []string
	for _, pattern := range patterns {
		packages, err := goList(ctx, []string{pattern})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(packages, func(p string) bool { return slices.Contains(tested, p) }) {
			return nil, fmt.Errorf("COVE_FULL names %s, and this run tests no such package; correct COVE_FULL or the packages in ARGS", pattern)
		}
		full = append(full, packages...)
	}
	return full, nil
}

// flags are those of go test: ours, and then those of the user, which replace ours.
func (o options) flags(full, race bool, goFlags []string) []string {
	// More than one package for each processor: tests of sandboxes wait half of their time.
	flags := []string{"-vet=off", "-p=" + strconv.Itoa(2*runtime.GOMAXPROCS(0))}
	if full {
		flags = append(flags, "-timeout=60m")
	} else {
		flags = append(flags, "-short", "-timeout=15m")
	}
	if race {
		flags = append(flags, "-race")
	}
	if o.installed == "" {
		return slices.Concat(flags, goFlags)
	}
	// No test has this name. The flag is a part of the key of go's test cache.
	skip := "^installed:" + o.installed + "$"
	for _, flag := range goFlags {
		if value, ok := strings.CutPrefix(strings.TrimLeft(flag, "-"), "skip="); ok {
			skip = value + "|" + skip
		}
	}
	return append(slices.Concat(flags, goFlags), "-skip="+skip)
}

// addProfiles has each command write a coverage profile of its own, of the statements of
// all packages. Packages without coverage become commands of their own.
func (o options) addProfiles(ctx context.Context, commands []command) ([]command, error) {
	all, err := goList(ctx, []string{"./..."})
	if err != nil {
		return nil, err
	}
	var out []command
	for i, c := range commands {
		plain := c
		plain.packages = slices.DeleteFunc(slices.Clone(c.packages), func(p string) bool { return !matches(uncovered, p) })
		c.packages = slices.DeleteFunc(slices.Clone(c.packages), func(p string) bool { return matches(uncovered, p) })
		covered := "./..."
		if slices.Contains(c.flags, "-race") {
			linked, err := goList(ctx, append([]string{"-deps", "-test"}, c.packages...))
			if err != nil {
				return nil, err
			}
			covered = strings.Join(slices.DeleteFunc(slices.Clone(all), func(p string) bool {
				return matches(forking, p) || !slices.Contains(linked, p) // go test warns of each that is not linked
			}), ",")
		}
		c.profile = []string{
			"-covermode=atomic", "-coverpkg=" + covered,
			"-coverprofile=" + filepath.Join(o.cover, fmt.Sprintf("%d.profile", i)),
		}
		for _, c := range []command{c, plain} {
			if len(c.packages) > 0 {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// rank orders packages: the longest first, the others as they come.
func rank(path string) int {
	if i := slices.Index(longest, short(path)); i >= 0 {
		return i
	}
	return len(longest)
}

// matches tells whether one of the names is that of the package.
func matches(names []string, path string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		dir, below := strings.CutSuffix(name, "/...")
		return short(path) == dir || below && strings.HasPrefix(short(path), dir+"/")
	})
}

func goList(ctx context.Context, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", strings.Join(patterns, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.Fields(string(out)), nil
}

// raceDetector tells whether this machine can build with the race detector, which
// needs a C compiler.
func raceDetector(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	enabled, compiler, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err == nil && enabled == "1" {
		_, err = exec.LookPath(strings.Fields(compiler + " none")[0])
		if err == nil {
			return true
		}
	}
	_, _ = fmt.Fprintln(os.Stderr, "no C compiler: the race detector is off in this run")
	return false
}
