package egress

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"

	"github.com/cove-sandbox/cove"
)

// TrustDir is a directory in a sandbox that no volume may stand in.
const TrustDir = "/tmp/.cove"

// trustFile is where programs find whom to trust with TLS: those whom the host
// trusts, and the authority of their own sandbox. It is in /tmp because that is
// there before anybody works in the sandbox, is not archived with the workspace,
// and ends with the sandbox, as the authority does. Whoever changes it changes
// whom his own programs trust, which he can do anyway.
const trustFile = TrustDir + "/ca.pem"

// trustVariables are how OpenSSL and Go, Node, Python's requests, curl, git and
// pip are told of a file.
var trustVariables = []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT"}

// bundles are where hosts keep whom they trust, in one file: Debian, Fedora, SUSE
// and Alpine.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// mostTrust bounds the file.
const mostTrust = 4 << 20

// hostTrust returns whom the host trusts, or nothing where it trusts nobody.
func hostTrust(paths []string) []byte {
	for _, path := range paths {
		f, err := os.Open(path) //nolint:gosec // one of a list of ours
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, mostTrust+1))
		_ = f.Close()
		if err == nil && len(text) > 0 && len(text) <= mostTrust {
			return append(bytes.TrimRight(text, "\n"), '\n')
		}
	}
	return nil
}

// tellTrust writes the file of a sandbox.
func tellTrust(ctx context.Context, in cove.Files, ca *Authority) error {
	text := append(hostTrust(bundles), ca.PEM()...)
	if err := in.Write(ctx, trustFile, bytes.NewReader(text), 0o444); err != nil {
		return cove.Wrap(cove.CodeOf(err), err, "the sandbox cannot be told whom to trust: %s", cove.MessageOf(err)).Remedy("make room in /tmp of the sandbox")
	}
	return nil
}

// Env returns the variables of a program that asked for some: it learns whom to
// trust, unless it was told otherwise, or its sandbox was.
func (w *Way) Env(asked, sandbox map[string]string) map[string]string {
	if w.Authority() == nil {
		return asked
	}
	env := map[string]string{}
	for _, name := range trustVariables {
		if _, told := sandbox[name]; !told {
			env[name] = trustFile
		}
	}
	maps.Copy(env, asked)
	return env
}
