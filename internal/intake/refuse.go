//go:build !lean

package intake

import (
	"io"
	"net/http"
	"time"
)

// Linger is how long a body that is not wanted is read on, so that a client that
// still sends sees the answer and not a broken connection.
const Linger = 5 * time.Second

// Refuse has answer write the answer to a request whose body was not read whole,
// sends it at once, and throws away what still arrives for a while. The connection
// is closed then. An answer without a Content-Length ends only with the connection.
func Refuse(w http.ResponseWriter, r *http.Request, linger time.Duration, answer func()) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // or the server would wait for the body before it sends the answer; HTTP/2 always is
	w.Header().Set("Connection", "close")
	answer()
	_ = control.Flush()
	_ = control.SetReadDeadline(time.Now().Add(linger))
	_, _ = io.Copy(io.Discard, r.Body) // until then, or the client is done
}
