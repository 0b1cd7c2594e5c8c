package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/config"
)

const twoRegions = "redis: {url: 'redis://r', region: us}\nregions:\n" +
	"  eu: {nodes: ['10.1.0.5:8100', '10.1.0.6:8100'], tenants: [acme], metadata: {region: eu, tier: '1'}}\n" +
	"  us: {nodes: 10.2.0.5:8100}\n"

func TestRegions(t *testing.T) {
	src := sources(t, nil)
	writeFile(t, src, twoRegions)
	c := load(t, src)
	want := config.Regions{
		"eu": {Nodes: []string{"10.1.0.5:8100", "10.1.0.6:8100"}, Tenants: []string{"acme"}, Metadata: map[string]string{"region": "eu", "tier": "1"}},
		"us": {Nodes: []string{"10.2.0.5:8100"}},
	}
	if diff := cmp.Diff(want, c.Regions); diff != "" {
		t.Error(diff)
	}
	again := sources(t, nil)
	writeFile(t, again, c.String())
	if diff := cmp.Diff(want, load(t, again).Regions); diff != "" {
		t.Errorf("printed and read again: %s", diff)
	}
}

func TestBadRegions(t *testing.T) {
	for text, want := range map[string]string{
		"regions: {EU: {nodes: 'a:1'}}":                                   "is not a name",
		"regions: {eu: there}":                                            "write it as {nodes:",
		"regions: {eu: {tenants: [a]}}":                                   "lacks nodes",
		"regions: {eu: {nodes: nowhere}}":                                 "has a host and a port",
		"regions: {eu: {nodes: 'a:1', x: 1}}":                             "use nodes, tenants and metadata",
		"regions: {eu: {nodes: 'a:1', tenants: ['../x']}}":                "is not a tenant's name",
		"regions: {eu: {nodes: 'a:1', metadata: x}}":                      "write names and values",
		strings.Replace(twoRegions, "region: us}", "region: U S}", 1):     "is not the name of a region",
		"regions: {eu: {nodes: 'a:1'}}":                                   "REDIS_URL or COVE_REGION is not",
		strings.Replace(twoRegions, "8100}", "8100, tenants: [acme]}", 1): "tenant acme is in eu and in us",
	} {
		src := sources(t, nil)
		writeFile(t, src, text)
		if _, err := config.Load(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
