package main

// column is one run of the suite.
type column struct {
	name    string
	dir     string // of the provider
	test    string
	against string // what was run against, as the page says it
}

func columns() []column {
	const server = "a server in the tests, written from the protocol's description"
	return []column{
		{"fake", "provider/fake", "TestConformance", "itself: it pretends in memory"},
		{"local", "provider/local", "TestConformance", "the kernel"},
		{"gvisor", "provider/gvisor", "TestConformance", "the executable that the build embeds"},
		{"docker", "provider/docker", "TestConformance", "a Docker daemon, with runc"},
		{"podman", "provider/docker", "TestConformancePodman", "the provider docker on Podman's socket, with runc"},
		{"microsandbox", "provider/microsandbox", "TestConformance", server},
		{"msb", "provider/microsandbox", "TestConformanceCLI", "the provider microsandbox on a program in the tests that pretends to be msb"},
		{"e2b", "provider/e2b", "TestConformance", server},
	}
}

func names(columns []column) []string {
	var all []string
	for _, c := range columns {
		all = append(all, c.name)
	}
	return all
}
