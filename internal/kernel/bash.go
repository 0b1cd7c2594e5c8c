package kernel

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// bashBoot reads the driver, or what a shell before this one knew, and then runs code
// in turns. It is one line, because bash counts the lines of code from the one where
// its eval is.
const bashBoot = `if { : <&249; } 2>/dev/null; then IFS= read -r -d '' __cove_made <&249; ` +
	`else LC_ALL=C IFS= read -r -N 8 __cove_made; LC_ALL=C IFS= read -r -N "$((10#$__cove_made))" __cove_made; fi; ` +
	`eval "$__cove_made" >/dev/null 2>&1; __cove_begin; ` +
	`while { __cove_pause "$?" "$-" "$@"; } 2>/dev/null; do __cove_turn; builtin eval "$__cove_set$__cove_text"; done`

// bash is called /bin/bash in its own messages, which tell lines only under a name
// that is not bash.
func bash() language {
	return language{
		name: "bash", program: "bash", argv: []string{"bash", "-c", bashBoot, "/bin/bash"}, drivers: [][]string{{"bash.sh"}},
		fit: func(code string) error {
			if strings.IndexByte(code, 0) >= 0 {
				return cove.InvalidField("code", "holds a NUL byte, which bash cannot take")
			}
			return nil
		},
	}
}
