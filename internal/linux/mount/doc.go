// Package mount builds file trees: it binds, bounds and replaces what a mount
// namespace shows.
//
// Every function acts on the mount namespace of the calling thread. They must be
// called only in a namespace that was made for it, with [Private] first, or what
// they do reaches the host. Read-only always means recursively: a mount below
// that stays writable is an error and never an oversight.
//
// Minimum kernel: Linux 3.8; [OpenTree], [NewTmpfs] and [Attach] need 5.2.
// [Find] needs 5.6, [Confine] and [MapUsers] 5.12, and so do the file systems.
// Before 5.12 [Restrict] walks over the mounts one by one and looks afterwards.
package mount
