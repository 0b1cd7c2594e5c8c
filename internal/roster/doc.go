// Package roster keeps the books of a provider: which sandboxes it has, which are
// being made or taken up again, which spares wait, and whether it was closed.
//
// An id is on the roster from the moment somebody reserves it, so that nobody makes
// a second sandbox of that name, and what is half made is not taken for an orphan.
// Whoever is to be waited for at the end says so with Enter.
//
// It must not know what a sandbox is, and does no input or output.
package roster
