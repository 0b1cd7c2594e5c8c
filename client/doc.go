// Package client is the platform over HTTP: the remote mode of Cove.
//
//	c, err := client.New("http://127.0.0.1:8000", key)
//	c, err := client.New("unix:///home/me/.cove/cove.sock", key)
//
// A [Client] implements [cove.Platform] like the engine does in process, and
// passes the same suite; choosing local or remote mode is choosing a
// constructor. Errors of the platform come back as the *cove.Error that they
// were. A server that cannot be reached, or that is not Cove, is
// cove.Unavailable.
//
// A context that ends also ends what the server does for it: a program in the
// foreground, a place in the queue, a stream. Lists and streams are read as
// they are consumed, and a consumer that is slow slows down what it follows.
//
// A session that has expired or was lost is opened again, and what was to run in
// it runs in the new one, once; the answer says so. [WithAutoRetry] switches that off.
// Package retry is the whole of it. Nothing is asked twice for another reason.
//
// The package must not hold logic of its own, repeat what may have happened, or
// show the key to anybody but the server it was given for.
package client
