package config_test

import (
	"slices"
	"testing"

	"github.com/cove-sandbox/cove/internal/config"
)

func TestCredentials(t *testing.T) {
	c := config.Config{Secrets: config.Secrets{"a": {Value: "Bearer  inner"}, "b": {}}}
	c.Client.APIKey, c.E2B.APIKey = "one", "two"
	if got, want := c.Credentials(), []string{"one", "two", "Bearer  inner", "inner"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (config.Config{}).Credentials(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
