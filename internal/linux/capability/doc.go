// Package capability takes all privileges from a thread, for good.
//
// After [Drop] nothing that is started from it can have a capability again: the sets
// are empty, the bounding set too, root is a user like any other, and exec gives
// no privileges. There is no way to keep some: what needs privileges is done
// before. The package must not be used to gain or to hand on capabilities.
//
// Minimum kernel: Linux 4.3.
package capability
