// Package debian makes layers from Debian packages: it lets the host's own apt find
// out what the host lacks and fetch that, with apt's own checks of signatures, and
// unpacks it beside the host.
//
// Nothing of a package is run: neither on the host nor, by this package, elsewhere.
// Of what its scripts would do, only alternatives are made; the rest is said in a
// note. It must not change the host: neither its packages nor apt's lists.
package debian
