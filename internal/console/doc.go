// Package console has the web console inside: the pages that web/ is built into,
// which make build puts into this package as one archive, where there is npm. It
// hands them to browsers, compressed as they are, with the headers that keep what
// is shown in them from running.
//
// It must not know who asks, nor anything of the API: what the pages show they ask
// for themselves.
package console
