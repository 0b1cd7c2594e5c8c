// Package userns finds out what an ordinary user may do with user namespaces on
// this host, maps users into them, and hands out users of the host to sandboxes.
//
// [Probe] does not guess: it makes the namespaces and tries what a sandbox
// needs. Only what fails is explained, by looking at the settings that are known
// to forbid it. The package must not keep namespaces open, but for what [New]
// returns, or change settings; remedies are for people to apply.
//
// Minimum kernel: Linux 3.8 for the namespaces.
package userns
