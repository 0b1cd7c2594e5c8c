package modeltest

import (
	"net/http"
	"strings"
)

// Refuse answers with a status and an error as such servers write one. Header are
// names and values in turn.
func Refuse(status int, message string, header ...string) Step {
	return func(w http.ResponseWriter, _ *http.Request, _ Question) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		writeError(w, status, "error", message)
	}
}

// Raw answers with a body as it is.
func Raw(status int, contentType, body string) Step {
	return func(w http.ResponseWriter, _ *http.Request, _ Question) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Page answers with a page for people, as a proxy does.
func Page(status int) Step {
	return Raw(status, "text/html; charset=utf-8", "<!doctype html><html><title>Sign in</title><p>Sign in to go on</html>")
}

// Endless streams text until whoever asked leaves.
func Endless() Step {
	return func(w http.ResponseWriter, r *http.Request, q Question) {
		s := Begin(w, q)
		for r.Context().Err() == nil {
			s.Delta(map[string]any{"content": strings.Repeat("and on ", 1000)}, nil)
		}
	}
}

// Cut streams a text and breaks the connection before it is finished.
func Cut(text string) Step {
	return func(w http.ResponseWriter, _ *http.Request, q Question) {
		s := Begin(w, q)
		s.Delta(map[string]any{"role": "assistant", "content": text}, nil)
		panic(http.ErrAbortHandler) //nolint:forbidigo // the way to end a connection without an end
	}
}

// Silent answers nothing until whoever asked leaves.
func Silent() Step {
	return func(_ http.ResponseWriter, r *http.Request, _ Question) { <-r.Context().Done() }
}
