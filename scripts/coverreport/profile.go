package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/cove-sandbox/cove"

// tally counts statements.
type tally struct{ all, reached int }

func (t tally) percent() float64 {
	if t.all == 0 {
		return 0
	}
	return 100 * float64(t.reached) / float64(t.all)
}

// report prints the table of a profile and returns its sum.
func report(profile, root, kept string, out io.Writer) (tally, error) {
	blocks, lines, err := read(profile, root)
	if err != nil {
		return tally{}, err
	}
	if len(blocks) == 0 {
		return tally{}, fmt.Errorf("%s holds no statement that counts", profile)
	}
	if kept != "" {
		if err := os.WriteFile(kept, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return tally{}, fmt.Errorf("write the kept profile: %w", err)
		}
	}
	byPackage := map[string]tally{}
	var total tally
	for place, b := range blocks {
		file, _, _ := strings.Cut(place, ":")
		dir := path.Dir(file)
		t := byPackage[dir]
		t.all += b.all
		t.reached += b.reached
		byPackage[dir] = t
		total.all += b.all
		total.reached += b.reached
	}
	row := func(name string, t tally) {
		_, _ = fmt.Fprintf(out, "%6.1f %%  %6d of %6d  %s\n", t.percent(), t.reached, t.all, name)
	}
	for _, dir := range slices.SortedFunc(maps.Keys(byPackage), func(a, b string) int {
		return cmp.Or(cmp.Compare(byPackage[a].percent(), byPackage[b].percent()), cmp.Compare(a, b))
	}) {
		row(dir, byPackage[dir])
	}
	row("all packages together", total)
	return total, nil
}

// read returns the blocks of a profile by place, each reached if any of its
// lines says so, and the lines themselves.
func read(profile, root string) (map[string]tally, []string, error) {
	f, err := os.Open(filepath.Clean(profile))
	if err != nil {
		return nil, nil, fmt.Errorf("open the profile: %w", err)
	}
	defer func() { _ = f.Close() }()

	blocks := map[string]tally{}
	var lines []string
	skip := map[string]bool{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		line := scan.Text()
		if strings.HasPrefix(line, "mode: ") {
			lines = append(lines, line)
			continue
		}
		var place string
		var statements, count int
		if _, err := fmt.Sscanf(line, "%s %d %d", &place, &statements, &count); err != nil {
			return nil, nil, fmt.Errorf("line %q of the profile: %w", line, err)
		}
		file, ours := strings.CutPrefix(place[:strings.LastIndex(place, ":")+1], module+"/")
		if !ours {
			return nil, nil, fmt.Errorf("line %q of the profile is not of %s", line, module)
		}
		file = strings.TrimSuffix(file, ":")
		if _, known := skip[file]; !known {
			if skip[file], err = leftOut(root, file); err != nil {
				return nil, nil, err
			}
		}
		if skip[file] {
			continue
		}
		lines = append(lines, line)
		b := blocks[strings.TrimPrefix(place, module+"/")]
		b.all = statements
		if count > 0 {
			b.reached = statements
		}
		blocks[strings.TrimPrefix(place, module+"/")] = b
	}
	if err := scan.Err(); err != nil {
		return nil, nil, fmt.Errorf("read the profile: %w", err)
	}
	return blocks, lines, nil
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// leftOut says whether the statements of a file do not count; the package
// comment has the reasons.
func leftOut(root, file string) (bool, error) {
	dir := path.Dir(file)
	if strings.HasSuffix(dir, "test") || dir == "bench" || path.Base(file) == "main.go" {
		return true, nil
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("%s is in the profile and not in the tree: run make cover again", file)
	}
	if err != nil {
		return false, fmt.Errorf("look for a generated file: %w", err)
	}
	return generated.Match(text), nil
}
