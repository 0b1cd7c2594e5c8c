//go:build linux

package e2b

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"

	"github.com/cove-sandbox/cove"
)

// machine is one at E2B, reached through the daemon inside it.
type machine struct {
	caller *caller
	id     string
	base   string
	token  string
}

// root is the user that may do everything inside; "" is the template's own.
const root = "root"

func (m *machine) header(user string) map[string]string {
	h := map[string]string{"E2b-Sandbox-Id": m.id, "E2b-Sandbox-Port": envdPort}
	if m.token != "" {
		h["X-Access-Token"] = m.token
	}
	if user != "" {
		h["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))
	}
	return h
}

const whomMachine = "the machine at E2B"

// rpc calls a procedure of the daemon that has one answer.
func (m *machine) rpc(ctx context.Context, procedure string, in, out any) error {
	h := m.header("")
	h["Connect-Protocol-Version"] = "1"
	if out == nil {
		out = &struct{}{}
	}
	_, err := m.caller.exchange(ctx, request{method: http.MethodPost, url: m.base + "/" + procedure, header: h, whom: whomMachine}, in, out)
	return err
}

// upload writes a file as a user, with the directories above it.
func (m *machine) upload(ctx context.Context, user, name string, content []byte) error {
	h := m.header("")
	h["Content-Type"] = "application/octet-stream"
	query := url.Values{"path": {name}}
	if user != "" {
		query.Set("username", user)
	}
	res, err := m.caller.send(ctx, request{
		method: http.MethodPost, url: m.base + "/files?" + query.Encode(), header: h, body: bytes.NewReader(content), length: int64(len(content)), whom: whomMachine,
	})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// alive reports whether the machine is there: an error means that nobody can tell.
func (m *machine) alive(ctx context.Context) (bool, error) {
	res, err := m.caller.send(ctx, request{method: http.MethodGet, url: m.base + "/health", header: m.header(""), whom: whomMachine})
	if cove.CodeOf(err) == cove.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, res.Body.Close()
}
