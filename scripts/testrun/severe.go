package main

import (
	"regexp"
	"slices"
	"strings"
)

// severe lists the tests whose failure is never taken for lateness: a second run that
// passes would prove nothing.
var severe = []struct {
	kind     string
	packages []string // all of their tests; a name that ends in /... includes the packages below it
	groups   []string // tests below a test or a group of a suite with this name
	words    []string // tests whose names contain one of these; names are compared in small letters and without _
}{
	{
		kind:     "an attack",
		packages: []string{"internal/linux/...", "internal/volume", "provider/local/fence", "provider/providertest/..."},
		groups:   []string{"escape", "hostile_archive", "isolation", "kill", "limits", "names", "paths"},
		words: []string{
			"areapart", "attack", "bodiesarebounded", "bomb", "burglar", "cannotbeset", "defence", "differentusers", "environment", "escape", "evasion", "hardening", "harmless", "hostile",
			"inject", "interpretershold", "isolation", "layerslimits", "leavetheworkspace", "lies", "limitshold", "link", "lockedup", "lying", "memoryends", "memoryisone",
			"mountswhatisallowed", "nobodycanchange", "notbelieved", "notbeside", "notroot", "ofthesystem", "outofreach", "outside", "ownroot",
			"pathsthatleave", "private", "programisbound", "readonly", "seedtars", "staybelow", "stayinside", "staysinside", "swapped", "testowns",
			"testpaths", "testsign", "toostrong", "usedonce", "volumeusers", "workspaceispart", "workspaceisthesandboxs", "writeonlywhere",
		},
	},
	{
		kind:   "a tenant",
		groups: []string{"floors", "keys", "links", "quota", "scopes", "tenants"},
		words:  []string{"floor", "namesofvariables", "neverover", "nocontent", "ofacaller", "ofothers", "pathsofthehost", "places", "questionsofasession", "quotas", "regions", "sharedtemplate", "tenant"},
	},
	{
		kind:     "a key",
		packages: []string{"internal/auth", "internal/preview", "internal/scope", "internal/ticket"},
		words: []string{
			"cannotchoose", "cookie", "dooris", "doorrefuses", "frontends", "guarded", "login", "mistrust", "owner", "revocation", "revoked", "scopebefore", "secret", "shareofakey", "signatures", "signed",
			"somebodyelse", "stranger", "testaccess", "testkeys", "testpublic", "ticket", "token", "whohesays", "whomay", "withoutakey",
		},
	},
	{
		kind:     "a policy",
		packages: []string{"internal/egress", "internal/policy", "internal/pypolicy", "internal/sqlpolicy"},
		groups:   []string{"blocked", "egress", "grants", "network", "programs", "sql"},
		words: []string{
			"asksaperson", "blocked", "ceiling", "closednetwork", "denied", "egress", "fallback", "grant", "importmodes", "keepstoitslist", "onitswayout", "policy", "runnothing", "specialvariables",
			"testimports", "thoseofthelist", "unlistedprograms",
		},
	},
	{
		kind:     "lost data",
		packages: []string{"store/...", "internal/archive", "internal/audit", "internal/bucket", "internal/rootfs/...", "internal/spool", "internal/upgradetest"},
		groups:   []string{"archive", "named_volumes", "restart", "snapshot", "snapshots"},
		words: []string{
			"acrossrestarts", "adopted", "comeback", "afterakill", "beyondakill", "beyondarestart", "cannotkeep", "closeandkeep", "crash", "cutshort", "damage",
			"doesnotlie", "drain", "inputof", "inputthat", "keepsthe", "killedserver", "killinthemiddle", "layersgone", "lost", "neverhalf", "onceinthewhole", "outlive",
			"samesandbox", "snapshot", "stopandstart", "survivesarestart", "tampered", "walk", "wholeornot", "withoutajournal",
		},
	},
	{kind: "a history", packages: []string{"internal/clustertest/..."}},
	{kind: "a leak", groups: []string{"leaks"}, words: []string{"leak", "leaveonly", "leavesnothing", "neverleft", "nothingisleft"}},
}

// severeOutput are signs of a defect in the output of a test that failed, or of its
// package.
var severeOutput = []struct {
	kind string
	text *regexp.Regexp
}{
	{"a data race", race},
	{"a leak", regexp.MustCompile(`goleak: |found unexpected goroutines|\b(is|are|be) left\b|\bleft (are|behind|something)\b|\bleft: |\b\d+ left\b|\bleft [\[&{]|is still there`)},
	{"a panic", regexp.MustCompile(`panic: |\bpanic(ked|s)?\b.*\bserving\b|request panicked`)},
	{"a crash", regexp.MustCompile(`fatal error: `)},
	{"a tenant or a key", regexp.MustCompile(`\b(other_tenant|wrong_key): |\b(another|other) tenant|\brival\b|\bsomebody else\b|\bwithout a key\b`)},
}

// race is a sign of a defect in the output of any test: the report of a data race can
// stand in the output of a test that passed.
var race = regexp.MustCompile(`WARNING: DATA RACE|race detected during execution of test`)

// failedInside finds the tests of another process whose output a test shows.
var failedInside = regexp.MustCompile(`--- FAIL: (\S+)`)

// severity says why a failed test is not run again, or "". A name is that of the package
// and the test; one without a package is not compared.
func severity(name, output string) string {
	for _, s := range severeOutput {
		if s.text.MatchString(output) {
			return s.kind
		}
	}
	if name == "" {
		return ""
	}
	path, test, _ := strings.Cut(name, " ")
	tests := []string{test}
	for _, inside := range failedInside.FindAllStringSubmatch(output, -1) {
		tests = append(tests, inside[1])
	}
	for _, s := range severe {
		if matches(s.packages, path) {
			return s.kind
		}
		for _, t := range tests {
			if isNamed(t, s.groups, s.words) {
				return s.kind
			}
		}
	}
	return ""
}

// isNamed tells whether a test is in one of the groups or has one of the words in its name.
func isNamed(test string, groups, words []string) bool {
	parts := strings.Split(test, "/")
	plain := plainName(test)
	return slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(parts, group) }) ||
		slices.ContainsFunc(words, func(word string) bool { return strings.Contains(plain, word) })
}

func plainName(test string) string { return strings.ToLower(strings.ReplaceAll(test, "_", "")) }
