package mcpserver

import (
	"crypto/rand"
	"net/http"
	"strings"
)

// sessionHeader is that with the id of an MCP session.
const sessionHeader = "Mcp-Session-Id"

// newID names an MCP session, and the server that has it.
func (f *face) newID() string {
	if f.Mark == "" {
		return rand.Text()
	}
	return f.Mark + "." + rand.Text()
}

// elsewhere is the mark of the server that a request is for, or "" where it is for
// this one or begins something new.
func (f *face) elsewhere(r *http.Request) string {
	mark, _, marked := strings.Cut(r.Header.Get(sessionHeader), ".")
	if f.Mark == "" || !marked || mark == f.Mark {
		return ""
	}
	return mark
}

// pass hands a request on to the server that has its MCP session. Nobody is asked for
// a key twice: that server does. Where it is gone the answer is the protocol's for an MCP
// session that is over, at which clients begin a new one.
func (h *Handler) pass(w http.ResponseWriter, r *http.Request, mark string) {
	to, err := h.face.Elsewhere(r, mark)
	if err != nil {
		fail(w, err)
		return
	}
	to.ServeHTTP(w, r)
}

// Refuse answers a request that another server did not answer.
func Refuse(w http.ResponseWriter, _ *http.Request, err error) { fail(w, err) }

// Here is the handler for requests that another server handed on: whatever they are
// for, they are not handed on again.
func (h *Handler) Here() http.Handler { return http.HandlerFunc(h.serve) }
