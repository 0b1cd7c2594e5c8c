package main

import "strings"

// failure is a test that failed, with what it wrote, or something else that did.
type failure struct{ name, said string }

// maxSaid is how many lines of a failure stand at the end of the report, where
// somebody looks who has only the end. All of them stand above.
const maxSaid = 12

// lines are the names, each with the end of what it said below it.
func lines(failures []failure) []string {
	var all []string
	for _, f := range failures {
		all = append(all, f.name)
		var said []string
		for line := range strings.Lines(f.said) {
			if text := strings.TrimRight(line, "\n"); !strings.HasPrefix(strings.TrimSpace(text), "=== ") {
				said = append(said, "  "+text)
			}
		}
		all = append(all, said[max(0, len(said)-maxSaid):]...)
	}
	return all
}
