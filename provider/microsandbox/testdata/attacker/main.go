// Command attacker makes the attacks of package escape and nothing else, so that it is
// small: whatever goes into a machine goes through a narrow way.
package main

import (
	"os"

	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func main() {
	if escape.Summoned(os.Args) {
		os.Exit(escape.Main(os.Args[1:]))
	}
}
