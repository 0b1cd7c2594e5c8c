package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMutationsAreSevere: a test that notices a missing defence fails the run at once.
func TestMutationsAreSevere(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "| what is missing |")
	list, _, _ = strings.Cut(list, "\n## ")
	rows := regexp.MustCompile("\\| `([^`]+ Test[^`]+)` \\|\n").FindAllStringSubmatch(list, -1)
	if len(rows) < 12 {
		t.Fatalf("docs/testing.md lists %d mutations", len(rows))
	}
	for _, row := range rows {
		if severity(row[1], "") == "" {
			t.Errorf("%s is run again when it fails: name it in severe.go", row[1])
		}
	}
}

// TestSevereNames: a test that was renamed must not lose its place in the list.
func TestSevereNames(t *testing.T) {
	t.Chdir("../..")
	names, groups := namesOfTests(t)
	for _, s := range severe {
		for _, path := range s.packages {
			if _, err := os.Stat(strings.TrimSuffix(path, "/...")); err != nil {
				t.Errorf("severe.go names a package: %v", err)
			}
		}
		for _, group := range s.groups {
			if !groups[group] {
				t.Errorf("severe.go names the group %q, which no suite has", group)
			}
		}
		for _, word := range s.words {
			if !strings.Contains(names, word) {
				t.Errorf("severe.go has the word %q, and no test has a name with it", word)
			}
		}
	}
	for _, name := range []string{
		"provider/local TestConformance/names/dots_stay_inside", "provider/gvisor TestConformance/volumes/read_only_unless_asked",
		"provider/docker TestConformance/solo/first_process_is_out_of_reach", "client TestPlatform/runs/of_others",
		"engine TestPlatform/trials/blocked", "internal/daemon TestDataRuns/local/grants/rows",
		"engine TestPlatform/sessions/stop_and_start", "internal/daemon TestBurglars", "internal/upgradetest TestLoss/folder",
		"internal/linux/forkexec TestKillTree/chain/root", "provider/local TestVolumeReadOnly", "cmd/cove TestNoAnswerLiesAfterAKill",
		"internal/cluster TestQuotasHoldForAllNodes", "provider/docker TestHardening", "engine TestFallbackOnlyWhenWritten",
		"internal/daemon TestOneShotThatCannotBeginLeavesNothing", "internal/daemon TestEarlySpareIsNeverLeft", "internal/measure TestErrorsLeaveOnlyTheLiveSandbox",
		"provider/local TestConformance/lifecycle/canceled_create_leaves_nothing", "provider/local TestConformance/volumes/destroy_keeps_the_host_files",
		"provider/fake TestConformance/writes/reader_sees_old_or_new_never_half", "provider/gvisor TestConformance/attach/gives_the_same_sandbox",
		"provider/docker TestConformance/files/whole_or_not_at_all", "engine TestPlatform/sessions/close_and_keep", "cmd/cove TestSessionsOutliveTheServer",
		"internal/daemon TestServerKeepsSessionsAcrossRestarts", "provider/local TestDiskBeyondARestart", "internal/cluster TestDrain", "internal/cluster TestAdoptedOnce",
		"provider/local TestConformance/prepare/spare_is_used_once", "provider/local TestConformance/warm/started_program_is_bound",
		"provider/local TestConformance/spec/boundary_too_strong_is_unsupported", "provider/local TestConformance/watch/sees_below_and_not_beside",
		"engine TestPlatform/volumes/write_only_where_allowed", "engine TestPlatform/contexts/are_apart", "engine TestPlatform/events/no_content",
		"provider/local TestOwnRoot", "internal/e2bapi TestOwns", "engine TestAskAsksAPerson", "engine TestPlacesAreOneAtATime", "internal/cluster TestRegions",
	} {
		if severity(name, "") == "" {
			t.Errorf("%s is run again when it fails", name)
		}
	}
	for _, output := range []string{
		"    places_test.go:294: another tenant: &{Tenant:rival}", "    a_test.go:7: another tenant reads it", "    a_test.go:7: without a key it answers 200",
		"    a_test.go:7: left [12:box]", "    a_test.go:7: 1 left, <nil>",
	} {
		if severity("engine TestX", output) == "" {
			t.Errorf("a test that says %q is run again", output)
		}
	}
	for _, name := range []string{"engine TestPlatform/exec/timeout", "internal/e2bapi TestWatchSlowClient", "provider/local TestConformance/solo/ignored_is_ignored"} {
		if kind := severity(name, "a_test.go:7: too late"); kind != "" {
			t.Errorf("%s is %s, and would not be run again", name, kind)
		}
	}
}

// namesOfTests returns all names of tests of the tree as one text, as plainName has them,
// and the groups of suites.
func namesOfTests(t *testing.T) (names string, groups map[string]bool) {
	t.Helper()
	var all strings.Builder
	groups = map[string]bool{}
	function, kase := regexp.MustCompile(`func (Test\w+)\(`), regexp.MustCompile(`\{"([a-z0-9_]+)", (\w+\()?`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			all.WriteString(plainName(found[1]) + "\n")
		}
		if strings.HasPrefix(path, "platformtest") || strings.HasPrefix(path, "provider/providertest") {
			for _, found := range kase.FindAllStringSubmatch(string(text), -1) {
				groups[found[1]] = groups[found[1]] || found[2] != ""
				all.WriteString(plainName(found[1]) + "\n")
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String(), groups
}
