// Package inprocess is the platform inside a Go program: the local mode of Cove.
//
//	func main() {
//		inprocess.Main()
//		p, err := inprocess.Open(ctx, inprocess.Config{Home: "/var/lib/my-agent"})
//		…
//		defer p.Close()
//	}
//
// A [Platform] is made of the parts of a server, without the server: engine,
// policy, journal, SQLite and a provider, in one directory that this program has
// to itself. It implements [cove.Platform] as client.New does, with the same
// retries, and passes the same suite, so that choosing local or remote mode is
// choosing a constructor.
//
// Every setting has the name and the meaning that it has for cove serve, and
// comes from [Config], the environment or the file config.yaml in the directory,
// in that order of weight.
//
// Sandboxes are children of this program and end with it, unless Config.Keep lets
// them live on until the next Open. A directory that a server or another program
// has is Conflict: there is one owner, and the error names it.
//
// The package must not offer anything that a client of a server cannot do, and
// must not listen on anything.
package inprocess
