//go:build linux

package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// What is said of an engine that nobody answers for.
const (
	absentWhy    = "Docker daemon not available"
	absentRemedy = "Set SANDBOX_TYPE=local or start Docker daemon"
)

// down is the error of an engine that cannot be reached or understood. It says
// what its Probe says.
func down(cause error, why, remedy string) *cove.Error {
	return cove.Wrap(cove.Unavailable, cause, "%s", why).Remedy("%s", remedy)
}

// fault turns what the client says into an error of ours. What says what was
// wanted, such as "make a container"; ctx is the caller's own.
func (e *engine) fault(ctx context.Context, err error, what string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if own, ok := errors.AsType[*cove.Error](err); ok {
		return own
	}
	if f := e.unreachable(err); f != nil {
		return f
	}
	switch text := err.Error(); {
	case strings.Contains(text, "no space left on device"), strings.Contains(text, "disk quota exceeded"):
		return cove.Wrap(cove.Exhausted, err, "the disk of the Docker engine is full, so it cannot %s", what).Reason(cove.ReasonCapacity).
			Remedy("free room on the engine's machine, such as with docker system prune")
	case errdefs.IsNotFound(err) && strings.Contains(text, "No such image"), strings.Contains(text, "image not known"):
		return cove.Wrap(cove.Unavailable, err, "the image of the sandbox is not on the Docker engine any more").Reason(cove.ReasonSandboxCreation).Remedy("%s", imageRemedy)
	case errdefs.IsNotFound(err):
		return cove.Wrap(cove.NotFound, err, "the container is gone: somebody else removed it").Reason(cove.ReasonNodeLost).Remedy("open a new sandbox")
	case errdefs.IsConflict(err):
		return cove.Wrap(cove.Conflict, err, "the Docker engine cannot %s now: the container is in another state", what).Remedy("try again")
	}
	return cove.Wrap(cove.Unavailable, err, "the Docker engine cannot %s", what).Remedy("look into the engine's log; cove doctor says what is known of it")
}

// unreachable is the error for an engine that did not answer as one; nil if it did.
func (e *engine) unreachable(err error) error {
	text := err.Error()
	var badHost x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var expired x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown), errors.As(err, &badHost), errors.As(err, &expired):
		return down(err, "the Docker engine at "+e.host+" shows a certificate that ca.pem does not vouch for", "put the engine's own ca.pem into DOCKER_CERT_PATH, and name it in DOCKER_HOST as its certificate does")
	case errors.As(err, &record), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return down(err, "the Docker engine at "+e.host+" does not speak TLS", "unset DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, or start the engine with --tlsverify")
	case strings.Contains(text, "HTTP request to an HTTPS server"), strings.Contains(text, "malformed HTTP response"):
		return down(err, "the Docker engine at "+e.host+" wants TLS", "set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the directory with ca.pem, cert.pem and key.pem")
	case strings.Contains(text, "remote error: tls:"):
		return down(err, "the Docker engine at "+e.host+" does not accept our certificate", "put cert.pem and key.pem that the engine's ca.pem vouches for into DOCKER_CERT_PATH")
	case strings.Contains(text, "permission denied while trying to connect"):
		return down(err, "the Docker socket "+e.host+" may not be opened by this user", "add the user to the group docker (sudo usermod -aG docker USER) and log in again")
	case errors.Is(err, context.DeadlineExceeded):
		return down(err, "the Docker engine at "+e.host+" does not answer", "see whether it hangs, and restart it; "+absentRemedy)
	case client.IsErrConnectionFailed(err), strings.Contains(text, "cannot connect to the Docker daemon"):
		return down(err, absentWhy, absentRemedy)
	case notJSON(err):
		return e.stranger(err)
	case strings.Contains(text, "is too old"), strings.Contains(text, "minimum supported API version"), strings.Contains(text, "is not supported by this client"):
		return down(err, "the Docker engine at "+e.host+" speaks another version of the API", "use Docker 20.10 or later, or Podman 4 or later")
	}
	return nil
}

// stranger is the error of something that answers and is no engine.
func (e *engine) stranger(cause error) error {
	return down(cause, "what answers at "+e.host+" is not a Docker engine", "set DOCKER_HOST to where the engine listens")
}

// notJSON reports whether an answer was no JSON, such as a page of a proxy.
func notJSON(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	text := err.Error()
	return syntax || kind || strings.Contains(text, "invalid character") || strings.Contains(text, "<html") || strings.Contains(text, "<!DOCTYPE") ||
		strings.Contains(text, "cannot unmarshal")
}
