// Package wiretest plays a server that is as docs/openapi.json describes one: it
// answers each request with every field that the description has, and keeps account
// of what in a request the description does not have. An SDK that goes through it and
// finds all that it reads cannot have drifted from what travels. It must not be used
// to test what a server does: it does nothing.
package wiretest
