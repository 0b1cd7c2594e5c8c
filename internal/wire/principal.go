package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"time"

	"github.com/cove-sandbox/cove"
)

// PrincipalHeader is how one node tells another who asks. It means something only on
// a connection whose other end has shown that it is a node.
const PrincipalHeader = "Cove-Principal"

// maxPrincipal bounds the header: a server takes no more of all headers together.
const maxPrincipal = 48 << 10

// principal is who asks, in words. What is not there is left out, so that nodes of
// different versions understand each other until one says what the other does not know.
type principal struct {
	Name      string        `json:"name"`
	Label     string        `json:"label,omitempty"`
	Tenant    string        `json:"tenant"`
	Scopes    []cove.Scope  `json:"scopes"`
	Limits    cove.KeyLimit `json:"limits,omitzero"`
	Defaults  cove.Spec     `json:"defaults,omitzero"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
}

// EncodePrincipal is the value of the header.
func EncodePrincipal(p cove.Principal) (string, error) {
	data, err := json.Marshal(principal(p))
	if err != nil {
		return "", cove.Wrap(cove.Internal, err, "the caller cannot be named to another node")
	}
	text := base64.RawURLEncoding.EncodeToString(data)
	if len(text) > maxPrincipal {
		return "", cove.Errorf(cove.Unsupported, "the key has more defaults or grants than one node can tell another").
			Remedy("make them fewer, or ask the node that has the session")
	}
	return text, nil
}

// DecodePrincipal reads the header of a node.
func DecodePrincipal(text string) (cove.Principal, error) {
	var p principal
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err = d.Decode(&p); err == nil && d.Decode(new(any)) != io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil || p.Name == "" || p.Tenant == "" || len(p.Scopes) == 0 {
		return cove.Principal{}, cove.Errorf(cove.Unauthenticated, "the node does not say who asks, or in words of another version").
			Remedy("run the same version on all nodes")
	}
	return cove.Principal(p), nil
}
