package cli

import (
	"strings"

	battery "github.com/cove-sandbox/cove/provider/providertest/escape"
)

// ConcludeVerify returns what cove verify says about findings, and its code.
func ConcludeVerify(provider string, found []battery.Finding) (text string, code int) {
	var out strings.Builder
	a := &app{sys: System{Stdout: &out}}
	err := a.concludeVerify(provider, found)
	return out.String(), exitCode(err)
}

// WhoServes is the line of cove doctor about who makes sandboxes.
var WhoServes = whoServes
