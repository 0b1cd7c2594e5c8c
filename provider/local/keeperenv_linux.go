package local

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove/internal/guest/agent"
)

// rootVariables say whom this process trusts with TLS, beside the host's list: a
// file, and directories with colons between. Ways out in the keeper must trust
// the same ones.
var rootVariables = []string{"SSL_CERT_FILE", "SSL_CERT_DIR"}

// keeperEnv is the environment of a keeper. Nothing else of ours is in it: it
// outlives us, and a variable may hold a secret.
func keeperEnv() []string {
	env := append(agent.Env(), moreEnv...)
	for _, name := range rootVariables {
		text := os.Getenv(name) //nolint:forbidigo // no setting of ours: crypto/x509 reads it, too
		if text == "" {
			continue
		}
		paths := filepath.SplitList(text)
		for i, path := range paths {
			// The keeper works in another directory.
			if full, err := filepath.Abs(path); err == nil && path != "" {
				paths[i] = full
			}
		}
		env = append(env, name+"="+strings.Join(paths, string(filepath.ListSeparator)))
	}
	return env
}
